//go:build linux

package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"cellblock/internal/fault"
)

// onBuilders runs f on each engine: how streams and files travel has nothing to do with builds.
func onBuilders(t *testing.T, f func(t *testing.T, p *Provisioner, name string)) {
	for _, s := range []setting{settings[0], settings[3]} {
		t.Run(strings.Split(s.name, "-")[0], func(t *testing.T) {
			p := newProvisioner(t, Config{Host: s.host(t), Slot: "s0"})
			name := fmt.Sprintf("cellblock-derived-test%d:latest", rand.Uint64())
			t.Cleanup(func() {
				if err := p.RemoveImage(context.Background(), name); err != nil {
					t.Error(fault.Text(err))
				}
			})
			f(t, p, name)
			nothingLeft(t, p, time.Minute)
		})
	}
}

func sh(script string) Step { return Step{Argv: []string{"sh", "-c", script}} }

func TestBuildImage(t *testing.T) {
	onBuilders(t, func(t *testing.T, p *Provisioner, name string) {
		var log strings.Builder
		made, err := p.BuildImage(t.Context(), Build{
			Name: name, Base: testImage, Labels: map[string]string{"test.label": "of the build"}, Env: []string{"ADDED=by the build"},
			Files: map[string][]byte{"given": []byte("a file")}, Network: "none", Limit: time.Minute, Size: 64 << 20,
			Steps: []Step{
				{Argv: []string{"sh", "-c", `cat /cellblock-build/given; echo; echo "$VARIABLE" >&2; [ "$(id -u)" = 0 ] && echo kept >/usr/local/kept && echo lost >/cellblock-build/lost`},
					Env: []string{"VARIABLE=of the step"}},
				sh(`[ "$(cat /usr/local/kept)" = kept ] && printf '#!/bin/sh\necho a program of a package\n' >/usr/local/bin/rm && chmod +x /usr/local/bin/rm`),
				{Argv: []string{"rm", "-f", "/usr/local/bin/nothing"}},
			},
		}, &log)
		if err != nil {
			t.Fatal(fault.Text(err))
		}
		if strings.Contains(log.String(), "a program of a package") {
			t.Error("a program that a step has installed was run in place of the image's own")
		}
		// Standard output and error come over two pipes.
		if !strings.Contains(log.String(), "a file") || !strings.Contains(log.String(), "of the step\n") {
			t.Errorf("the log is %q", log.String())
		}
		base, err := p.Image(t.Context(), testImage)
		if err != nil {
			t.Fatal(fault.Text(err))
		}
		if made.Labels["test.label"] != "of the build" || made.Labels["cellblock.languages"] != base.Labels["cellblock.languages"] ||
			!slices.Contains(made.Env, "ADDED=by the build") || !slices.Contains(made.Env, "HOME=/home/cellblock") {
			t.Errorf("labels %v, environment %v", made.Labels, made.Env)
		}
		inspect, err := p.known().api.ImageInspect(t.Context(), name)
		if err != nil || inspect.Config.User != "65534:65534" || slices.Contains(inspect.Config.Cmd, "sleep") || len(inspect.Config.Volumes) > 0 {
			t.Errorf("%+v, %v", inspect.Config, err)
		}
		spec := newSpec(t, p, `[ "$(cat /usr/local/kept)" = kept ] && [ ! -e /cellblock-build/lost ] && [ "$(id -u)" != 0 ] && [ "$ADDED" = "by the build" ] && sleep 0.5 && exit 7`)
		spec.Image = name
		if got := runOnce(t, p, spec); got != 7 {
			t.Errorf("a kernel in the image ended with %d", got)
		}
	})
}

// Without a name only the steps are run.
func TestBuildNothing(t *testing.T) {
	onBuilders(t, func(t *testing.T, p *Provisioner, _ string) {
		var log strings.Builder
		made, err := p.BuildImage(t.Context(), Build{Base: testImage, Steps: []Step{sh("echo looked")}, Network: "none", Limit: time.Minute}, &log)
		if err != nil || made.ID != "" || log.String() != "looked\n" {
			t.Errorf("%+v, %q, %v", made, log.String(), err)
		}
		if _, err := p.BuildImage(t.Context(), Build{Base: testImage, Steps: []Step{sh("exit 3")}, Network: "none", Limit: time.Minute}, io.Discard); !isStep(err, 3) {
			t.Error(err)
		}
	})
}

func isStep(err error, code int) bool {
	failed, ok := errors.AsType[*StepError](err)
	return ok && failed.ExitCode == code
}

// Another name of an image keeps it, and removing the last one removes it.
func TestImageNames(t *testing.T) {
	onBuilders(t, func(t *testing.T, p *Provisioner, name string) {
		if _, err := p.BuildImage(t.Context(), Build{Name: name, Base: testImage, Steps: []Step{sh("touch /x")}, Network: "none", Limit: time.Minute}, io.Discard); err != nil {
			t.Fatal(fault.Text(err))
		}
		other := strings.Replace(name, ":latest", ":other", 1)
		if err := p.TagImage(t.Context(), name, other); err != nil {
			t.Fatal(fault.Text(err))
		}
		if err := p.RemoveImage(t.Context(), name); err != nil {
			t.Fatal(fault.Text(err))
		}
		if _, err := p.Image(t.Context(), name); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("it is still called so: %v", err)
		}
		if _, err := p.Image(t.Context(), other); err != nil {
			t.Error(fault.Text(err))
		}
		spec := newSpec(t, p, forever)
		spec.Image = other
		h := launchKernel(t, p, spec)
		if err := p.RemoveImage(t.Context(), other); fault.KindOf(err) != fault.Conflict {
			t.Errorf("an image in use was removed: %v", err)
		}
		if err := errors.Join(h.Stop(t.Context(), 0), h.Close(), p.RemoveImage(t.Context(), other), p.RemoveImage(t.Context(), other)); err != nil {
			t.Error(fault.Text(err))
		}
	})
}

func TestBuildThatFails(t *testing.T) {
	for what, c := range map[string]struct {
		steps []Step
		size  int64
		want  func(error) bool
	}{
		"halfway": {steps: []Step{sh("echo one >/one"), sh("echo two >/two; exit 3"), sh("echo three")}, want: exits(3)},
		"absent":  {steps: []Step{{Argv: []string{"no-such-program"}}}, want: func(err error) bool { return exits(126)(err) || exits(127)(err) }},
		"large": {steps: []Step{sh("head -c 3000000 /dev/zero >/large")}, size: 2 << 20,
			want: func(err error) bool {
				return fault.KindOf(err) == fault.Invalid && strings.Contains(err.Error(), "may grow by 2 MiB")
			}},
	} {
		t.Run(what, func(t *testing.T) {
			onBuilders(t, func(t *testing.T, p *Provisioner, name string) {
				var log strings.Builder
				_, err := p.BuildImage(t.Context(), Build{Name: name, Base: testImage, Steps: c.steps, Network: "none", Limit: time.Minute, Size: c.size}, &log)
				if !c.want(err) || strings.Contains(log.String(), "three") {
					t.Errorf("%v; %s", err, log.String())
				}
				noImage(t, p, name)
			})
		})
	}
}

func exits(code int) func(error) bool {
	return func(err error) bool {
		step, ok := errors.AsType[*StepError](err)
		return ok && step.ExitCode == code
	}
}

// noImage fails the test if there is an image of this name, or one without a name that came of its build.
func noImage(t *testing.T, p *Provisioner, name string) {
	t.Helper()
	if _, err := p.Image(t.Context(), name); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("there is an image: %v", err)
	}
	list, err := p.known().api.ImageList(t.Context(), image.ListOptions{All: true,
		Filters: filters.NewArgs(filters.Arg("label", labelInstallation+"="+p.cfg.Installation))})
	if err != nil || len(list) > 0 {
		t.Errorf("images are left: %+v, %v", list, err)
	}
}

func TestBuildIsCancelled(t *testing.T) {
	onBuilders(t, func(t *testing.T, p *Provisioner, name string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		runs, ended := io.Pipe()
		go func() {
			line := make([]byte, 5)
			_, _ = io.ReadFull(runs, line)
			cancel()
			_, _ = io.Copy(io.Discard, runs)
		}()
		_, err := p.BuildImage(ctx, Build{Name: name, Base: testImage, Steps: []Step{sh("echo begun; sleep 1000")}, Network: "none", Limit: time.Hour}, ended)
		_ = ended.Close()
		if fault.KindOf(err) != fault.Cancelled {
			t.Errorf("got %v", err)
		}
		noImage(t, p, name)
	})
}

// What a killed server was building, the next one in its place takes away, and another process does not.
func TestBuildOfKilledServerIsSwept(t *testing.T) {
	onBuilders(t, func(t *testing.T, p *Provisioner, name string) {
		e, err := p.engine(t.Context())
		if err != nil {
			t.Fatal(fault.Text(err))
		}
		config, host, err := p.buildContainer(t.Context(), e, Build{Name: name, Base: testImage, Network: "none", Limit: time.Hour})
		if err != nil {
			t.Fatal(fault.Text(err))
		}
		if _, err := p.sweeper.create(t.Context(), e, config, host, buildPrefix+"s0-"+p.cfg.Installation).wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			slot string
			left int
		}{{"c0", 1}, {"s0", 0}} {
			next, err := New(Config{Host: e.host, Installation: p.cfg.Installation, Slot: c.slot, Shim: p.cfg.Shim, RunDir: p.cfg.RunDir})
			if err != nil {
				t.Fatal(fault.Text(err))
			}
			next.started = time.Now().Add(2 * time.Second) // engines write times in seconds
			next.sweepBuilds(t.Context(), e)
			_ = next.Close()
			if got := len(containersOf(t, e, p.cfg.Installation)); got != c.left {
				t.Errorf("%s has left %d containers, want %d", c.slot, got, c.left)
			}
		}
	})
}

// A build has a network unless it is told not to.
func TestBuildHasANetwork(t *testing.T) {
	onBuilders(t, func(t *testing.T, p *Provisioner, name string) {
		for network, interfaces := range map[string]string{"": "-gt 1", "none": "= 1"} {
			_, err := p.BuildImage(t.Context(), Build{Name: name, Base: testImage, Network: network, Limit: time.Minute,
				Steps: []Step{sh(`[ "$(ls /sys/class/net | wc -l)" ` + interfaces + ` ]`)}}, io.Discard)
			if err != nil {
				t.Errorf("network %q: %s", network, fault.Text(err))
			}
			if err := p.RemoveImage(t.Context(), name); err != nil {
				t.Error(fault.Text(err))
			}
		}
	})
}
