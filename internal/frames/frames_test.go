package frames

import "testing"

func TestKinds(t *testing.T) {
	for line, want := range map[string]string{
		"Cell In[1], line 3":                                       "frame",
		"  Cell In [12], line 3, in f()":                           "frame",
		"Input In [1], in <cell line: 3>()":                        "frame",
		"File /workspace/m.py:2, in f(x)":                          "frame",
		"File ~/own.py:2":                                          "frame",
		"File /usr/lib/python3/dist-packages/x.py:3, in g()":       "library",
		"File /usr/lib/python3.13/json/decoder.py:3, in g()":       "library",
		"File <frozen importlib>:3":                                "library",
		"File pandas/_libs/index.pyx:3, in pandas.get()":           "library",
		"File <string>:35, in line_of_input(prompt)":               "kernel",
		"---------------------------------------------------":      "ornament",
		"ZeroDivisionError      Traceback (most recent call last)": "ornament",
		"ZeroDivisionError: division by zero":                      "",
		"----> 1 x":                                                "",
	} {
		got := ""
		switch {
		case Kernel(line):
			got = "kernel"
		case Library(line):
			got = "library"
		case Begin(line):
			got = "frame"
		case Ornament(line):
			got = "ornament"
		}
		if got != want {
			t.Errorf("%q is %q, want %q", line, got, want)
		}
	}
}

func TestRenumbered(t *testing.T) {
	for _, tt := range []struct {
		line, want string
		shift      int
	}{
		{"Cell In[1], line 1", "Cell In[27], line 1", 26},
		{"File <ipython-input-6-abc>:1", "File <ipython-input-7-abc>:1", 1},
		{"Cell In[2], line 1", "Cell In[2], line 1", -2},
		{"Cell In[99999999999999999999], line 1", "Cell In[99999999999999999999], line 1", 1},
		{"x Cell In[1]", "x Cell In[1]", 1},
	} {
		if got := Renumbered(tt.line, tt.shift); got != tt.want {
			t.Errorf("%q by %d is %q, want %q", tt.line, tt.shift, got, tt.want)
		}
	}
}
