"""Function words by language, and how prose of that language uses them.

Words are folded (NFKC, lower case) and cut like the text itself; Chinese and Japanese entries are single
characters. A reference is ``(least share of units, least effective number of different ones)``: about the
first percentile over clean documents of at least 50 units for English and Chinese, half of English for the
others, of which we hold too little to measure. The effective number is two to the power of the entropy.
"""

from __future__ import annotations

VERSION = 1

FUNCTION_WORDS: dict[str, tuple[str, ...]] = {
    language: tuple(words.split())
    for language, words in {
        "en": "the of and to a in is it that for on with as be are this was by not or from at an"
        " which you can if has have will but they their its his her he she we i my your our"
        " were been there when what who all would one so no more may than then them these"
        " those into about up out only also any some such other each do does did how must"
        " should could where why while because before after over under between through both"
        " most same very just here had being within without until since during against upon"
        " per via yet nor us me him whose whom",
        "zh": "的 了 是 在 和 不 有 我 他 她 它 们 這 这 那 就 也 都 而 及 与 與 或 之 以 其 为 為 于 於"
        " 所 者 会 會 可 能 要 个 個 一 上 下 中 到 从 從 对 對 将 將 被 把 由 如 果 若 但 因 此 并"
        " 並 且 则 則 当 當 时 時 后 後 前 您 你 使 用 该 該 等 很 更 最 已 没 沒 无 無 何 还 還 又"
        " 只 来 來 去 过 過 地 得 着 著 吗 呢 吧 矣 乎 焉 哉 兮 亦 乃 自 相 每 各 某 些 什 么 麼 怎"
        " 样 樣 話 话 即 应 應 需 让 讓 给 給 向 至 非 未",
        "de": "der die das und ist in zu den von mit sie des auf für nicht ein eine als auch es"
        " an werden aus er hat dass wird bei oder um am sind noch wie einem über einen so"
        " zum kann sich dem wenn nach durch nur vor zur bis",
        "fr": "de la le et les des en un du une que est pour qui dans par plus pas au sur ne se"
        " ce il sont avec ou son aux d l cette ces être a si leur mais comme vous nous peut"
        " on sa ses elle fait",
        "es": "de la que el en y a los del se las por un para con no una su al lo como más o pero"
        " sus le ha es este si sin sobre ser también me hasta hay donde desde todo nos"
        " durante puede son está",
        "pt": "de a o que e do da em um para com não uma os no se na por mais as dos como mas ao"
        " ele das à seu sua ou quando muito nos já eu também só pelo pela até isso é são"
        " pode",
        "it": "di e il la che in un a per è una sono con non del si da i le della al nel dei come"
        " più o alla ma lo gli se delle su ha anche questo questa essere può l d dal",
        "nl": "de het een en van in is dat op te zijn met voor niet aan er om ook als dan maar"
        " bij of uit nog naar door kan worden wordt u deze dit die je hij wat over hebben"
        " heeft",
        "sv": "och i att det som en på är av för med till den har de inte om ett men var sig så"
        " från vi kan när år du eller ska din detta denna vid efter",
        "da": "og i at det som en på er af for med til den har de ikke om et men var sig så fra"
        " vi kan når du eller skal din dette denne ved efter der",
        "fi": "ja on ei se että oli hän mutta ovat kun niin tai myös voi jos joka sen ole kuin"
        " sitä tämä mukaan ne",
        "pl": "i w na z do że się nie to jest o jak za od po przez dla są a tym co być lub oraz"
        " może jego ten ta by czy tylko aby można które który",
        "cs": "a v se na je že o s z do i to jako za by pro ale jsou ve po od k si který nebo být"
        " které tak jeho jen už při lze pokud",
        "hu": "a az és hogy nem is egy ez meg van vagy de ha el csak már mint ki volt még le azt"
        " lehet kell be fel",
        "ro": "de și în a la cu pe care o un nu se este din pentru mai ca să sau au sunt fi prin"
        " al ale ce dacă",
        "tr": "ve bir bu için ile da de ne o daha çok gibi olarak olan en kadar sonra var ama ya"
        " veya değil her ise mi",
        "id": "yang dan di untuk dengan dari ini itu pada tidak dalam adalah ke akan atau oleh"
        " juga dapat anda sebagai",
        "vi": "và của là có được trong cho không một các với này người những để khi đã từ như đến"
        " bạn hoặc về trên",
        "ru": "и в не на что с по как к из у за от это для о а но же он так все или бы его если"
        " при до их вы может было только когда чтобы также во",
        "uk": "і в не на що з по як до із у за від це для о а але же він так все або би його якщо"
        " при їх ви може було й та є тільки коли щоб також",
        "bg": "и в на не за от се да с по е като са че това до или при има ще може които който ако",
        "el": "και το να του η της με την που τα σε για από ο είναι στο δεν των στην τη θα οι ή"
        " αν ένα μια ως",
        "ja": "の に は を た が で て と し れ さ い も な あ か る こ ま す り ら く き よ う つ",
        "ko": "이 그 및 수 것 등 또는 있는 있습니다 합니다 때 더 한 할 위해 대한 있다 하는 경우 를 을 은 는",
        "ar": "في من على إلى أن التي الذي هذا هذه عن مع لا ما هو هي كان أو قد كل بعد لم إذا ذلك بين عند",
        "hi": "के का की है में से को और पर एक यह हैं ने कि भी हो नहीं इस था लिए जो या तो वह कर",
    }.items()
}

_OTHERS = (0.10, 4.0)
REFERENCES: dict[str, tuple[float, float]] = {"en": (0.15, 6.0), "zh": (0.05, 6.0)}


def references() -> list[tuple[float, float]]:
    """Least share and spread per language, in the order of :data:`FUNCTION_WORDS`."""
    return [REFERENCES.get(language, _OTHERS) for language in FUNCTION_WORDS]
