# Shows long lists and tuples of short values in full lines. IPython gives each value a line of its own, which makes
# hundreds of lines of what nobody has even printed.
import io
import itertools
import sys

from IPython.lib import pretty

SHORT = 32  # characters of a value: np.float64(0.8333333333333334)
PLAIN = (int, float, str, bool, complex, bytes, type(None))


def are_plain(values):
    generic = getattr(sys.modules.get("numpy"), "generic", ())
    return all(type(value) in PLAIN or isinstance(value, generic) for value in values)


def texts_of(values, p):
    # As they would be shown: somebody may have chosen how, as by %precision.
    out = io.StringIO()
    one = pretty.RepresentationPrinter(out, type_pprinters=p.type_pprinters, deferred_pprinters=p.deferred_pprinters)
    for value in values:
        one.pretty(value)
        one.flush()
        yield out.getvalue()
        out.seek(0)
        out.truncate()


def in_full_lines(begin, end, one_by_one):
    def show(obj, p, cycle):
        most = p.max_seq_length or len(obj)
        values = [] if cycle else list(itertools.islice(obj, most))
        texts = list(texts_of(values, p)) if len(values) > 1 and are_plain(values) else []
        room = p.max_width - p.output_width - p.buffer_width
        if not texts or sum(map(len, texts)) + 2 * len(texts) <= room or max(map(len, texts)) > SHORT:
            return one_by_one(obj, p, cycle)
        if len(obj) > most:
            texts.append("...")
        p.begin_group(len(begin), begin)
        for i, text in enumerate(texts):
            text += "," if i < len(texts) - 1 else end
            if i and p.output_width + p.buffer_width + len(text) >= p.max_width:
                p.break_()
            elif i:
                p.text(" ")
            p.text(text)
        p.end_group(len(begin), "")

    return show


def fill_lines_with_values(shell):
    formatter = shell.display_formatter.formatters["text/plain"]
    for kind, begin, end in (list, "[", "]"), (tuple, "(", ")"):
        formatter.for_type(kind, in_full_lines(begin, end, formatter.for_type(kind)))
