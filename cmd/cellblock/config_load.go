package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/knadh/koanf/maps"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/spf13/pflag"

	"cellblock/internal/fault"
	"cellblock/internal/nearest"
	"cellblock/sessions"
)

// sources are where configuration comes from; tests give their own.
type sources struct {
	flags   *pflag.FlagSet
	environ []string
	// defaults are those that the command has of its own.
	defaults map[string]any
	// files are candidates in order of preference; only the first that exists is read. When named is set, it must exist.
	files []string
	named string
}

// configFiles lists where a configuration file is looked for.
func configFiles() []string {
	files := []string{"cellblock.yaml"}
	if dir, err := os.UserConfigDir(); err == nil {
		files = append(files, filepath.Join(dir, "cellblock", "config.yaml"))
	}
	return append(files, "/etc/cellblock/config.yaml")
}

// environment variables with our prefix that are not configuration keys.
var foreignEnv = []string{"CELLBLOCK_CONFIG", "CELLBLOCK_TOKEN", "CELLBLOCK_URL", "CELLBLOCK_SHIM_BINARY"}

// serviceVariables are those that Kubernetes gives all pods that have a service called cellblock beside them.
var serviceVariables = regexp.MustCompile(`^CELLBLOCK_(SERVICE_HOST=|SERVICE_PORT(_[A-Z0-9_]+)?=|PORT_\d+_(TCP|UDP|SCTP)(_[A-Z]+)?=|PORT=(tcp|udp|sctp)://)`)

// loadConfig reads all layers and checks the result.
func loadConfig(src sources) (*Config, error) {
	base := defaults()
	for key, value := range src.defaults {
		base[key] = value
	}
	known := make([]string, 0, len(base))
	for key := range base {
		known = append(known, key)
	}
	slices.Sort(known)
	fromFile, path, err := src.fromFile()
	if err != nil {
		return nil, err
	}
	environment, err := src.fromEnv(known)
	if err != nil {
		return nil, err
	}
	where, all := origins{}, map[string]any{}
	for _, layer := range []struct {
		values map[string]any
		origin func(key string) string
	}{
		{base, func(string) string { return byDefault }},
		{fromFile, func(string) string { return path }},
		{environment, envName},
		{src.fromFlags(known), func(key string) string { return "--" + flagName(key) }},
	} {
		for key := range layer.values {
			where[key] = layer.origin(key)
			if err := checkKey(key, where[key], layer.values[key], known); err != nil {
				return nil, err
			}
		}
		if err := src.resolveEnvReferences(layer.values); err != nil {
			return nil, err
		}
		for key, value := range layer.values { // with what was referred to
			if err := checkEmpty(key, where[key], value, base); err != nil {
				return nil, err
			}
		}
		maps.Merge(maps.Unflatten(layer.values, "."), all)
	}
	cfg, err := decode(all, where)
	if err != nil {
		return nil, err
	}
	cfg.origins = where
	cfg.inherit(func(key string) bool { return where[key] != "" })
	return cfg, cfg.check()
}

// languageKey is a key of one language's settings, as an environment variable's name has it, too.
var languageKey = regexp.MustCompile(`^languages[._]([a-z0-9_]+)[._](idle_timeout|max_life)$`)

// checkKey refuses unknown keys. images.* and languages.* take any language's name below them, profiles.* any profile's.
func checkKey(key, origin string, value any, known []string) error {
	if _, _, ok := profileKey(key); ok || isEmptyProfile(key, value) {
		return checkProfileKey(key, origin, value)
	}
	if slices.Contains(known, key) || strings.HasPrefix(key, "images.") || languageKey.MatchString(key) {
		return nil
	}
	err := fault.New(fault.Invalid, "configuration: unknown key %q (%s)", key, origin)
	if strings.HasPrefix(strings.ToLower(key), "mcp_") {
		return err.WithHint("MCP_ISSUER and those like it are environment variables alone: set %s.", strings.ToUpper(key))
	}
	if language, _, ok := strings.Cut(strings.TrimPrefix(key, "languages."), "."); ok && strings.HasPrefix(key, "languages.") {
		return err.WithHint("A language has languages.%[1]s.idle_timeout and languages.%[1]s.max_life.", language)
	}
	if below := beginning(key+".", known); len(below) > 0 {
		return err.WithHint("It is a group, of %s.", strings.Join(below, ", "))
	}
	group, last := "", key
	if dot := strings.LastIndexByte(key, '.'); dot >= 0 {
		group, last = key[:dot+1], key[dot+1:]
	}
	for _, word := range []string{key, last} { // perhaps in a group that it does not belong to
		if near := nearest.Of(word, known); near != "" {
			return err.WithHint("Did you mean %q?", near)
		}
	}
	if of := beginning(group, known); len(of) > 0 {
		known = of
	}
	return err.WithHint("Known keys: %s.", strings.Join(known, ", "))
}

// checkEmpty refuses an empty value of what has a default. As a number it would be 0, which is no limit; as a switch it would turn the
// audit log off; as a folder it would be the current one.
func checkEmpty(key, origin string, value any, base map[string]any) error {
	usual := base[key]
	if _, rest, ok := profileKey(key); ok && usual == nil {
		usual = base["profiles."+sessions.DefaultProfile+"."+rest]
	}
	if says(value) || !says(usual) {
		return nil
	}
	return fault.New(fault.Invalid, "configuration: %s (%s) is empty", key, origin).WithHint("Give it a value, or leave it out for the default.")
}

// says tells whether a value is more than none at all. An empty list in a file is one: of nothing.
func says(value any) bool {
	list, ok := value.([]string)
	return value != nil && value != "" && (!ok || len(list) > 0)
}

// beginning are the keys that begin so.
func beginning(prefix string, keys []string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !strings.HasPrefix(key, prefix) })
}

// fromFile reads the file, and returns which one it is.
func (s sources) fromFile() (values map[string]any, path string, err error) {
	path = s.named
	if path == "" {
		for _, candidate := range s.files {
			if _, err := os.Stat(candidate); err == nil {
				path = candidate
				break
			}
		}
	}
	if path == "" {
		return nil, "", nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, path, fault.New(fault.NotFound, "configuration: no file %s", path).
			WithHint("Check --config and CELLBLOCK_CONFIG.")
	}
	if err != nil {
		return nil, path, fault.New(fault.Invalid, "configuration: %w", err).WithHint("Check that it is a file that may be read.")
	}
	nested, err := yaml.Parser().Unmarshal(text)
	if err != nil {
		return nil, path, explainYAML(path, err)
	}
	maps.IntfaceKeysToStrings(nested)
	values, _ = maps.Flatten(nested, nil, ".")
	for key, value := range values {
		if isEmptyProfile(key, value) {
			values[key] = map[string]any{} // nothing would take away what a built-in one is
		}
	}
	return values, path, nil
}

func envName(key string) string {
	return "CELLBLOCK_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

func (s sources) fromEnv(known []string) (map[string]any, error) {
	byName := make(map[string]string, len(known))
	names := make([]string, 0, len(known))
	for _, key := range known {
		byName[envName(key)] = key
		names = append(names, envName(key))
	}
	values := map[string]any{}
	for _, kv := range s.environ {
		name, value, _ := strings.Cut(kv, "=")
		switch key, ok := byName[name]; {
		case ok:
			values[key] = value
		case name == "LOG_LEVEL" && values["log.level"] == nil:
			values["log.level"] = strings.ToLower(value)
		case strings.HasPrefix(name, "CELLBLOCK_IMAGES_"):
			values["images."+strings.ToLower(strings.TrimPrefix(name, "CELLBLOCK_IMAGES_"))] = value
		case strings.HasPrefix(name, "CELLBLOCK_LANGUAGES_") && languageKey.MatchString(strings.ToLower(strings.TrimPrefix(name, "CELLBLOCK_"))):
			values[languageKey.ReplaceAllString(strings.ToLower(strings.TrimPrefix(name, "CELLBLOCK_")), "languages.$1.$2")] = value
		case profileVariable(name) != "":
			values[profileVariable(name)] = value
		case slices.Contains(foreignEnv, name), strings.HasPrefix(name, "CELLBLOCK_TEST_"), serviceVariables.MatchString(kv):
		case strings.HasPrefix(strings.ToUpper(name), "CELLBLOCK_"):
			return nil, unknownVariable(name, names)
		}
	}
	return values, nil
}

// bare is a variable's name without what all have in common, which would make all alike.
func bare(name string) string { return strings.TrimPrefix(name, "CELLBLOCK_") }

// misnamedLanguage is a variable of a language, in whose name an underscore is not looked for.
var misnamedLanguage = regexp.MustCompile(`^CELLBLOCK_LANGUAGES_([A-Z0-9]+)_`)

// unknownVariable is the error of a variable with our prefix that means nothing.
func unknownVariable(name string, known []string) error {
	err := fault.New(fault.Invalid, "configuration: unknown environment variable %s", name)
	if upper := strings.ToUpper(name); upper != name {
		return err.WithHint("Names are in capitals: %s.", upper)
	}
	if language := misnamedLanguage.FindStringSubmatch(name); language != nil {
		return err.WithHint("A language has CELLBLOCK_LANGUAGES_%[1]s_IDLE_TIMEOUT and CELLBLOCK_LANGUAGES_%[1]s_MAX_LIFE.", language[1])
	}
	if strings.HasPrefix(bare(name), "MCP_") {
		return err.WithHint("Its name is %s.", bare(name))
	}
	if near := nearestProfileVariable(name); near != "" {
		return err.WithHint("Did you mean %s?", near)
	}
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = bare(k)
	}
	if near := nearest.Of(bare(name), names); near != "" {
		return err.WithHint("Did you mean CELLBLOCK_%s?", near)
	}
	return err.WithHint("Unset it, or see docs/configuration.md for the names.")
}

func flagName(key string) string { return strings.NewReplacer(".", "-", "_", "-").Replace(key) }

// fromFlags takes the flags that were given; a flag is named like its key, with dashes.
func (s sources) fromFlags(known []string) map[string]any {
	values := map[string]any{}
	if s.flags == nil {
		return values
	}
	s.flags.Visit(func(f *pflag.Flag) {
		if i := slices.IndexFunc(known, func(key string) bool { return flagName(key) == f.Name }); i >= 0 {
			values[known[i]] = f.Value.String()
		}
	})
	return values
}

// resolveEnvReferences replaces values "env:NAME" by the variable's value.
func (s sources) resolveEnvReferences(values map[string]any) error {
	for key, v := range values {
		text, ok := v.(string)
		if !ok || !strings.HasPrefix(text, "env:") {
			continue
		}
		name := strings.TrimPrefix(text, "env:")
		i := slices.IndexFunc(s.environ, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		if i < 0 {
			return fault.New(fault.Invalid, "configuration: %s refers to the environment variable %s, which is not set", key, name)
		}
		values[key] = strings.TrimPrefix(s.environ[i], name+"=")
	}
	return nil
}
