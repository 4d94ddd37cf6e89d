"""A spam filter for synthetic mails: explain a prediction, learn from a mistake, forget it."""

import numpy as np

import deciban as db

SHARED = ["hello", "please", "today", "you", "your", "we", "the", "and", "for", "a"]
WORDS = {
    "ham": ["meeting", "notes", "report", "lunch", "train", "friday", "project", "review", "draft", "agenda"],
    "spam": ["cheap", "pills", "prize", "claim", "free", "winner", "offer", "watches", "click", "buy"],
}


def mails(label: str, n: int, rng: np.random.Generator) -> list[str]:
    """Mails of ten words: 40 % are shared words, and 10 % are words of the other class."""
    other = "spam" if label == "ham" else "ham"
    vocabularies = [SHARED, WORDS[label], WORDS[other]]
    drawn = rng.choice(3, (n, 10), p=[0.4, 0.5, 0.1])
    return [" ".join(str(rng.choice(vocabularies[i])) for i in row) for row in drawn]


rng = np.random.default_rng(0)
texts = [*mails("ham", 200, rng), *mails("spam", 100, rng)]
labels = ["ham"] * 200 + ["spam"] * 100

# A list of texts is an X: no vectorizer, no vocabulary to keep. Each mail is predicted from all the others.
model = db.NaiveBayes().fit(texts, labels)
print(model.leave_one_out(texts, labels).by_class())

mail = ["Hello, claim your free lunch today: cheap watches"]
print(model.explain(mail))

# It was a friend's joke: learn it as ham. It was spam after all: forget it, and the model is as before.
before = model.predict_proba(mail)
model.partial_fit(mail, ["ham"])
print(f"P(spam) {before[0, 1]:.3f}, after it was learned as ham {model.predict_proba(mail)[0, 1]:.3f}")
model.forget(mail, ["ham"])
print("after it was forgotten, the same to the last bit:", bool((model.predict_proba(mail) == before).all()))
