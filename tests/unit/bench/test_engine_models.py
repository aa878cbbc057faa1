"""What a decode step reads of a model."""

from contest.models import num_read_by_a_step

SIZES = {"model.embed_tokens.weight": 1000, "model.layers.0.mlp.up_proj.weight": 300, "lm_head.weight": 1000}


def test_of_an_input_embedding_a_step_reads_no_more_than_rows() -> None:
    assert num_read_by_a_step(SIZES, is_tied=False) == 1300


def test_an_embedding_that_is_the_output_head_as_well_is_read_whole() -> None:
    tied = {name: size for name, size in SIZES.items() if name != "lm_head.weight"}
    assert num_read_by_a_step(tied, is_tied=True) == 1300
