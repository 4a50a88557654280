"""Records: the labels that say what is wrong with an answer, as all who count them know them."""
