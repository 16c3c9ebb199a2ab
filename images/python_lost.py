# Reads on behind what cannot be loaded any more, because its module is gone, say, or its class refuses the state that it had, and finds
# which variables have that in them. It is Python's own unpickler, which is slow: the other one ends with the first that fails.
import pickle


class Lost:
    # Stands for what could not be loaded.
    __slots__ = "why", "args"

    def __init__(self, why, args=()):
        self.why, self.args = why, args


class Incomplete(Exception):
    pass


class Careful(pickle._Unpickler):
    def __init__(self, file):
        super().__init__(file)
        self.incomplete = {}  # by identity: what is there, but not as it was, and why
        self.why = ""  # the first thing failed of those that are read as one; others may only follow from that
        self.failed = {}  # by identity: what was read as one in which something failed, and why

    def load(self):
        self.why = ""
        value = super().load()
        if self.why:
            self.failed[id(value)] = self.why
        return value

    def lost(self, error, args=()):
        self.why = self.why or f"{name_of(type(error))}: {error}"
        return Lost(self.why, args)

    def spoil(self, value, error):
        self.incomplete[id(value)] = value, self.lost(error).why

    def find_class(self, module, name):
        try:
            return super().find_class(module, name)
        except Exception as error:
            return self.lost(error)

    def load_get(self, step):
        step(self)
        if type(self.stack[-1]) is Lost:
            self.why = self.why or self.stack[-1].why

    def load_reduce(self):
        args = self.stack[-1]
        try:
            super().load_reduce()
        except Exception as error:
            self.stack[-1] = self.lost(error, args)

    def load_pop(self):
        # What was called for what it does, and not for what it gives, was to set the state of its first argument.
        dropped = self.stack[-1] if self.stack else None
        if type(dropped) is Lost and dropped.args:
            self.spoil(dropped.args[0], dropped.why)
        super().load_pop()

    def load_new(self, step):
        try:
            step(self)
        except Exception as error:
            self.append(self.lost(error))

    def load_into(self, step):
        try:
            step(self)
        except Exception as error:
            self.spoil(self.stack[-1], error)

    def among(step, *codes):
        # The instructions of these codes are what step makes of them.
        own = pickle._Unpickler.dispatch
        return {code[0]: lambda self, plain=own[code[0]]: step(self, plain) for code in codes}

    dispatch = {
        **pickle._Unpickler.dispatch,
        pickle.REDUCE[0]: load_reduce,
        pickle.POP[0]: load_pop,
        **among(load_get, pickle.BINGET, pickle.LONG_BINGET),
        **among(load_new, pickle.NEWOBJ, pickle.NEWOBJ_EX),
        **among(load_into, pickle.BUILD, pickle.APPEND, pickle.APPENDS, pickle.SETITEM, pickle.SETITEMS, pickle.ADDITEMS),
    }
    del among


def lost_in(value, reading):
    # Why it is not as it was; nothing where it is. Pickling meets all that it consists of.
    class Looking(type(pickler(Nowhere()))):
        def persistent_id(self, part):
            if type(part) is Lost:
                raise Incomplete(part.why)
            if id(part) in reading.incomplete:
                raise Incomplete(reading.incomplete[id(part)][1])

    try:
        Looking(Nowhere(), protocol=5).dump(value)
    except Incomplete as error:
        return str(error)
    except Exception:  # what a user's class raises that misses something, or only because it cannot be pickled again
        return reading.failed.get(id(value), "")
    return ""
