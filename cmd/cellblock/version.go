package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"cellblock/internal/fault"
)

func newVersion() *cobra.Command {
	var sbom bool
	cmd := &cobra.Command{
		Use:   "version [PROGRAM]",
		Short: "Print the version, or what the program is made of",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			info, err := buildInfo(args)
			if err != nil {
				return err
			}
			if sbom {
				return writeSBOM(cmd.OutOrStdout(), info, len(args) == 0)
			}
			p := programOf(info, len(args) == 0)
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s (%s, %s/%s)%s\n", p.name, p.version, p.compiler, p.os, p.arch, stamp(info))
			return nil
		},
	}
	cmd.Flags().BoolVar(&sbom, "sbom", false, "print the modules that this program, or PROGRAM, is made of, as CycloneDX JSON")
	return cmd
}

// buildInfo is what the linker left in this program, or in the one that is named, which may be for another system.
func buildInfo(args []string) (*debug.BuildInfo, error) {
	if len(args) == 0 {
		info, ok := debug.ReadBuildInfo()
		if !ok {
			info = &debug.BuildInfo{}
		}
		return info, nil
	}
	info, err := buildinfo.ReadFile(args[0])
	if err != nil {
		return nil, fault.New(fault.Invalid, "%w", err).WithHint("Name a program that Go has built.")
	}
	return info, nil
}

// program is what is known of one.
type program struct{ name, version, compiler, os, arch string }

// programOf tells a program from what the linker left in it. The version that is set when one is linked only the program itself knows;
// of another it is the module's, which is that of its commit.
func programOf(info *debug.BuildInfo, own bool) program {
	if own {
		return program{"cellblock", version, runtime.Version(), runtime.GOOS, runtime.GOARCH}
	}
	is := settings(info)
	return program{path.Base(info.Path), info.Main.Version, info.GoVersion, is["GOOS"], is["GOARCH"]}
}

// stamp is which commit the program was built from, as far as that was known.
func stamp(info *debug.BuildInfo) string {
	is := settings(info)
	if is["vcs.revision"] == "" {
		return ""
	}
	text := fmt.Sprintf(" commit %.12s of %s", is["vcs.revision"], is["vcs.time"])
	if is["vcs.modified"] == "true" {
		text += ", changed"
	}
	return text
}

func settings(info *debug.BuildInfo) map[string]string {
	is := map[string]string{}
	for _, s := range info.Settings {
		is[s.Key] = s.Value
	}
	return is
}

// component is a part of a program, in the words of CycloneDX 1.5.
type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// writeSBOM writes a bill of materials from what the linker left in the program. It is the same for each run.
func writeSBOM(w io.Writer, info *debug.BuildInfo, own bool) error {
	type metadata struct {
		Component component `json:"component"`
	}
	doc := struct {
		Format     string      `json:"bomFormat"`
		Spec       string      `json:"specVersion"`
		Version    int         `json:"version"`
		Metadata   metadata    `json:"metadata"`
		Components []component `json:"components"`
	}{Format: "CycloneDX", Spec: "1.5", Version: 1}
	is, p := settings(info), programOf(info, own)
	doc.Metadata.Component = component{Type: "application", Name: p.name, Version: p.version}
	for _, key := range []string{"GOOS", "GOARCH", "vcs.revision", "vcs.time", "vcs.modified"} {
		if is[key] != "" {
			doc.Metadata.Component.Properties = append(doc.Metadata.Component.Properties, property{key, is[key]})
		}
	}
	doc.Components = []component{{Type: "library", Name: "stdlib", Version: p.compiler, PURL: "pkg:golang/stdlib@" + strings.TrimPrefix(p.compiler, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := component{Type: "library", Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + m.Path + "@" + m.Version}
		if m.Sum != "" {
			c.Properties = []property{{"go.sum", m.Sum}}
		}
		doc.Components = append(doc.Components, c)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(doc)
}
