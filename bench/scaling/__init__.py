"""How cost and memory grow with the corpus: copies that are no near duplicates, and runs over them."""
