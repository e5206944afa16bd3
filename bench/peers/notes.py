"""What a reader must know before comparing numbers."""

NOTES = (
    "datatrove splits words with spaCy's rule-based tokeniser (Chinese with jieba), in every step that"
    " needs words; most of its time is spent there. That is what its users run, so it is counted. Each"
    " language gets its own tokeniser, as a run per language does. Its last reading, which writes what"
    " survives, is left out.",
    "Peers call near-duplicates what falls into one bucket, and join through chains. Ours compares the"
    " texts of every candidate pair (edit similarity of at least 0.8) and each removed document with its"
    " survivor; the column **unlike** shows what that is for. Its cost is in our number.",
    "Ours stands twice: with 16 bands of 8 rows, its default, and with 25 of 5, which bring edited copies"
    " together that 16 × 8 misses. More bands bring more unlike documents together, too: a tool that calls"
    " them duplicates for that can't have more, ours compares their texts and pays with time alone.",
    "Shingles differ: ours are characters (13; 5 where Han prevails) of text folded by NFKC, case and"
    " white space; theirs are what their guides recommend, at 16 bands of 8 rows instead of their own"
    " numbers of bands.",
    "rensa and datasketch are libraries: they hold everything in memory and leave reading, shingles,"
    " groups and writing to their user; the lines around them are in `bench/peers/runners/`. With single"
    " words a document has far fewer items to hash, and unlike documents share most of theirs.",
    "data-juicer's two repetition filters measure one statistic each; Gopher's rules, ours and"
    " datatrove's, are thirteen. The bar is about the latter.",
    "data-juicer runs with its option `turbo`, text-dedup with its hash xxh3: neither is the default,"
    " both are faster than it. data-juicer imports torch after each operator; that is left out.",
    "Our filter measures every statistic of its default rules and of the preset in one step, for every"
    " document; theirs are one filter each and stop at the first rule that fails. Our one number"
    " therefore stands in each of the filter stages.",
    "Our C4 preset judges whole documents; datatrove's also cuts lines, and needs a sentence tokeniser"
    " for it.",
    "Exact dedup folds width, case and white space on our side (so it finds the label `width`); theirs"
    " hash the text as it is (data-juicer strips its ends).",
    "Unicode repair: both remove control characters and lone surrogates, unify line ends and compose to"
    " NFC; ftfy also undoes wrong decoding, entities, ligatures and curly quotes, which ours never"
    " touches in stored text.",
    "Our tasks load their compiled kernels, about 0.4 s of CPU time in a run, and that is in our"
    " **work**; the imports of the others are not in theirs. On five thousand documents it is 80"
    " microseconds of our number, on 100,000 it is 4.",
    "Not every tool ran on every number of documents: *best peer* is the best of the table above it.",
    "Every tool runs on one core with one thread; what a tool gains by more is not measured here.",
)
