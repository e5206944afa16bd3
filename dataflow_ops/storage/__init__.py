"""Where bytes live: blob stores and the chunk store on top of them."""
