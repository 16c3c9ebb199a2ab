package derived

import (
	"context"
	"slices"
	"strings"

	"cellblock/images"
	"cellblock/internal/fault"
)

// Resolve returns what the engine knows an image by that an owner names for a session of a language: one of his own, one of the
// server's, or one that the configuration allows. It is noted as used. The error is Invalid, and says what he may name.
func (l *Library) Resolve(ctx context.Context, owner, language, name string) (string, error) {
	if nameRule.MatchString(name) {
		e, err := l.find(ctx, owner, name)
		switch {
		case err == nil && !slices.Contains(e.Languages, language):
			return "", fault.New(fault.Invalid, "image: %s brings %s, and not %s", name, strings.Join(e.Languages, ", "), language)
		case err == nil:
			l.Used(e.Image)
			return e.Image, nil
		case fault.KindOf(err) != fault.NotFound:
			return "", err
		}
	}
	if b, ok := l.base(withTag(name)); ok && slices.Contains(b.Languages, language) {
		return b.Image, nil
	}
	if slices.ContainsFunc(l.cfg.Allowed, func(rule string) bool { return allows(rule, name) }) {
		i, err := l.cfg.Engine.Image(ctx, name)
		if err == nil && i.Labels[Label] == l.cfg.Installation { // an owner's, by its id or another of its names
			return "", l.refuse(ctx, owner, language, name)
		}
		if err == nil && !slices.Contains(languagesOf(i), language) {
			err = fault.New(fault.Invalid, "image: %.200s does not say that it brings %s", name, language).
				WithHint("its label %s must name the language", images.Label)
		}
		return name, err
	}
	return "", l.refuse(ctx, owner, language, name)
}

func withTag(name string) string {
	if strings.Contains(name, ":") {
		return name
	}
	return name + ":latest"
}

// allows tells whether a rule of Config.Allowed is about an image. Nobody is let into other owners' images by one.
func allows(rule, name string) bool {
	if strings.HasPrefix(name, Prefix) || strings.HasPrefix(name, ownedPrefix) {
		return false
	}
	beginning, open := strings.CutSuffix(rule, "*")
	return name == rule || open && strings.HasPrefix(name, beginning)
}

// refuse says which images an owner may name.
func (l *Library) refuse(ctx context.Context, owner, language, name string) error {
	err := fault.New(fault.Invalid, "image: %.200q is not one that a %s session of yours may run in", name, language)
	list, listErr := l.List(ctx, owner)
	if listErr != nil {
		return err
	}
	var names []string
	for _, e := range list {
		if slices.Contains(e.Languages, language) {
			names = append(names, e.Name)
		}
	}
	return err.WithHint("you may use %s", strings.Join(append(names, l.cfg.Allowed...), ", "))
}

func languagesOf(i Image) []string { return images.Labelled(i.Labels[images.Label]) }
