package render

import (
	"html"
	"html/template"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2"
	chromahtml "github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
)

// classes is the style of what is coloured by a style sheet. Chroma's own styles are 70 files that it reads as the program starts.
var classes = chroma.MustNewStyle("classes", nil)

var highlighter = chromahtml.New(chromahtml.WithClasses(true), chromahtml.PreventSurroundingPre(true), chromahtml.ClassPrefix("hl-"))

var (
	// A magic of IPython is a line that begins with % or !, or asks for help with a question mark.
	lineMagic = regexp.MustCompile(`^\s*(%[A-Za-z_]|!|\?{1,2}[A-Za-z_])|^\s*%?[A-Za-z_][\w.]*\?{1,2}\s*$`)
	cellMagic = regexp.MustCompile(`^%%([A-Za-z_]\w*)`)
)

// magicLanguages are the languages of what follows a cell magic; of others it is Python that is timed, captured and so on.
var magicLanguages = map[string]string{
	"bash": "bash", "sh": "bash", "script": "bash", "system": "bash", "html": "html", "HTML": "html", "svg": "xml", "SVG": "xml", "javascript": "javascript", "js": "javascript",
	"latex": "tex", "markdown": "markdown", "perl": "perl", "ruby": "ruby", "sql": "sql", "writefile": "", "file": "", "cython": "cython", "R": "r",
}

// Code is the source of a cell as coloured text, the inside of a <pre>. The language is one of ours ("python", "bash"), or any
// that is known by such a name; unknown ones get no colours.
func Code(language, source string) template.HTML {
	source, more := clip(source, maxText)
	source = undirected(source)
	made := template.HTML("")
	if language == "python" {
		made = ipython(source)
	} else {
		made = colour(language, source)
	}
	return made + remark(more)
}

// ipython colours Python with the magics that IPython adds to it.
func ipython(source string) template.HTML {
	if m := cellMagic.FindStringSubmatch(source); m != nil {
		first, rest, more := strings.Cut(source, "\n")
		language, known := magicLanguages[m[1]]
		if !known {
			language = "python"
		}
		if !more {
			return magic(first)
		}
		return magic(first) + "\n" + colour(language, rest)
	}
	var made, plain strings.Builder
	flush := func() {
		made.WriteString(string(colour("python", plain.String())))
		plain.Reset()
	}
	for line := range strings.Lines(source) {
		if lineMagic.MatchString(line) {
			flush()
			made.WriteString(string(magic(line)))
			continue
		}
		plain.WriteString(line)
	}
	flush()
	return template.HTML(made.String())
}

func magic(line string) template.HTML {
	return template.HTML(`<span class="hl-magic">` + html.EscapeString(line) + `</span>`)
}

// colour is code of a language that chroma knows, without an end of line that it does not have.
func colour(language, source string) template.HTML {
	escaped := func() template.HTML { return template.HTML(html.EscapeString(source)) }
	lexer := languages()[strings.ToLower(language)]
	if lexer == nil || source == "" || len(source) > maxHighlighted {
		return escaped()
	}
	return guarded(escaped, func() (template.HTML, error) {
		tokens, err := chroma.Coalesce(lexer).Tokenise(&chroma.TokeniseOptions{State: "root", EnsureLF: false}, source)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		err = highlighter.Format(&b, classes, tokens)
		return template.HTML(b.String()), err
	})
}

// languages are all that chroma knows, by their names, their other names and the endings of their files, in small letters. Chroma's
// own way to find one compares a name that it does not know with every pattern of every language, which takes milliseconds.
var languages = sync.OnceValue(func() map[string]chroma.Lexer {
	all := map[string]chroma.Lexer{}
	add := func(lexer chroma.Lexer, name string) {
		if name = strings.ToLower(name); all[name] == nil {
			all[name] = lexer
		}
	}
	known := slices.Clone(lexers.GlobalLexerRegistry.Lexers)
	for _, lexer := range known {
		add(lexer, lexer.Config().Name)
	}
	for _, lexer := range known {
		for _, alias := range lexer.Config().Aliases {
			add(lexer, alias)
		}
	}
	sort.Stable(chroma.PrioritisedLexers(known)) // of those whose files end alike
	for _, patternsOf := range []func(*chroma.Config) []string{
		func(c *chroma.Config) []string { return c.Filenames }, func(c *chroma.Config) []string { return c.AliasFilenames },
	} {
		for _, lexer := range known {
			for _, pattern := range patternsOf(lexer.Config()) {
				if ending, ok := strings.CutPrefix(pattern, "*."); ok && !strings.ContainsAny(ending, "*?[") {
					add(lexer, ending)
				}
			}
		}
	}
	return all
})
