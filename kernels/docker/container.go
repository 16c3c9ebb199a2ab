package docker

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-units"

	"cellblock/kernels"
	"cellblock/kernels/stream"
)

// Paths inside the container.
const (
	shimDir      = "/cellblock"
	shimPath     = shimDir + "/shim"
	workspaceDir = "/workspace"
	homeDir      = "/home/cellblock"
	kernelDir    = "/run/kernel"
	socketDir    = "/run/cellblock"
	socketName   = "s"
)

// Labels of our containers and volumes.
const (
	labelInstallation = "cellblock.installation"
	labelSlot         = "cellblock.slot"
	labelKernel       = "cellblock.kernel"
	labelCarrier      = "cellblock.carrier"
	labelLanguage     = "cellblock.language"
	// labelWorkspace is the workspace that a volume stands for, labelImage the image that it was made with, labelHelper the
	// volume that a container only reaches.
	labelWorkspace = "cellblock.workspace"
	labelImage     = "cellblock.image"
	labelHelper    = "cellblock.helper"
	labelShim      = "cellblock.shim" // of a volume: it holds a shim
)

const (
	// homeSize is the size of the home folder, which holds caches and settings that nobody misses.
	homeSize = 64 << 20
	// kernelDirSize is that of the folder for the connection file and the kernel's own sockets.
	kernelDirSize = 1 << 20
	// logSize is how much of a container's log the engine keeps.
	logSize = "256k"
	// cpuUnit is one core in the engine's unit.
	cpuUnit = 1_000_000_000
)

// plan is all that decides what a kernel's container looks like.
type plan struct {
	spec         kernels.Spec
	installation string
	slot         string
	kind         string // of engine
	extras       extras
	user         identity
	ulimits      []*units.Ulimit // where the limits say nothing
	imageEnv     []string
	shim         mount.Mount
	workspace    mount.Mount
	// socket is the host's folder for the stream's socket; empty when the stream travels over stdio, with attachKey.
	socket    string
	attachKey string
}

// containerName is the container of a kernel.
func containerName(kernelID string) string { return "cellblock-" + kernelID }

// carrier is the one that the plan is for.
func (p plan) carrier() Carrier {
	if p.socket == "" {
		return CarrierStdio
	}
	return CarrierSocket
}

// config returns what to create. It depends on the plan alone.
func (p plan) config() (*container.Config, *container.HostConfig) {
	config := &container.Config{
		Hostname:   "cellblock",
		User:       p.user.user,
		Image:      p.spec.Image,
		Entrypoint: []string{shimPath},
		WorkingDir: workspaceDir,
		Env:        []string{stream.ConfigEnv + "=" + p.shimConfig()},
		Labels:     p.labels(),
	}
	if p.kind != KindPodman { // which asks systemd for a timer even for none
		// An image's own check would run its command beside the kernel.
		config.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}}
	}
	logs := container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": logSize}}
	if p.carrier() == CarrierStdio {
		config.OpenStdin, config.AttachStdin, config.AttachStdout, config.AttachStderr = true, true, true, true
		// The engine would log the stream, all of it, twice as large as it is.
		logs = container.LogConfig{Type: "none"}
	}
	no := false
	host := &container.HostConfig{
		LogConfig:      logs,
		NetworkMode:    "none",
		RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
		CapDrop:        []string{"ALL"},
		IpcMode:        container.IPCModePrivate,
		ReadonlyRootfs: true,
		SecurityOpt:    []string{"no-new-privileges"},
		Tmpfs:          p.tmpfs(),
		ShmSize:        p.spec.Limits.Tmp,
		UsernsMode:     container.UsernsMode(p.user.userns),
		Runtime:        p.extras.runtime,
		Resources:      p.resources(),
		Mounts:         p.mounts(),
		Init:           &no,
	}
	return config, host
}

// labels are the caller's and ours; ours win.
func (p plan) labels() map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, p.spec.Labels)
	labels[labelInstallation] = p.installation
	labels[labelSlot] = p.slot
	labels[labelKernel] = p.spec.ID
	labels[labelCarrier] = string(p.carrier())
	labels[labelLanguage] = p.spec.Kernelspec.Language
	return labels
}

// mounts are the folders that come from outside.
func (p plan) mounts() []mount.Mount {
	mounts := []mount.Mount{p.shim, p.workspace}
	if p.socket != "" {
		mounts = append(mounts, mount.Mount{Type: mount.TypeBind, Source: p.socket, Target: socketDir, ReadOnly: true})
	}
	return append(mounts, p.extras.mounts...)
}

// tmpfs are the folders in memory, which counts as the container's. The mode lets any uid in; there is but one.
func (p plan) tmpfs() map[string]string {
	options := func(size int64) string {
		o := "rw,noexec,nosuid,nodev,mode=1777"
		if size > 0 {
			o += ",size=" + strconv.FormatInt(size, 10)
		}
		return o
	}
	folders := map[string]string{
		"/tmp":    options(p.spec.Limits.Tmp),
		homeDir:   options(homeSize),
		kernelDir: options(kernelDirSize),
	}
	if p.kind == KindPodman { // which makes these writable and executable, read-only root or not
		for _, dir := range []string{"/run", "/var/tmp"} {
			folders[dir] = "ro,noexec,nosuid,nodev,size=64k"
		}
	}
	return folders
}

// resources translates the limits. Swap is memory and swap together for the engine, so that equal means none.
func (p plan) resources() container.Resources {
	l := p.spec.Limits
	r := container.Resources{
		Memory: l.Memory, MemorySwap: l.Memory,
		NanoCPUs: int64(math.Round(l.CPUs * cpuUnit)),
		Ulimits:  []*units.Ulimit{{Name: "core"}},
		Devices:  p.extras.devices, DeviceRequests: p.extras.requests,
	}
	if l.PIDs > 0 {
		r.PidsLimit = &l.PIDs
	}
	if l.FileSize > 0 {
		r.Ulimits = append(r.Ulimits, &units.Ulimit{Name: "fsize", Soft: l.FileSize, Hard: l.FileSize})
	}
	if l.Files > 0 {
		r.Ulimits = append(r.Ulimits, &units.Ulimit{Name: "nofile", Soft: l.Files, Hard: l.Files})
	}
	for _, u := range p.ulimits {
		if !slices.ContainsFunc(r.Ulimits, func(have *units.Ulimit) bool { return have.Name == u.Name }) {
			r.Ulimits = append(r.Ulimits, u)
		}
	}
	return r
}

// shimConfig is what the shim is told, as JSON.
func (p plan) shimConfig() string {
	k := p.spec.Kernelspec
	c := stream.Config{
		KernelID: p.spec.ID, Listen: "stdio", AttachKey: p.attachKey,
		Argv: k.Argv, Env: p.environment(), Dir: workspaceDir, RunDir: kernelDir + "/k",
		Transport: orElse(k.Transport, "ipc"), InterruptMode: orElse(k.InterruptMode, "signal"), Waits: k.Waits,
		PatienceMS: p.spec.Patience.Milliseconds(),
		// The container has them too, but rootless Podman 4.3 ignores what it is told.
		Rlimits: stream.Rlimits{FileSize: p.spec.Limits.FileSize, Files: p.spec.Limits.Files}, Seccomp: true,
	}
	if p.spec.Egress {
		c.Egress = &stream.Egress{Proxy: stream.DefaultProxyPort, Authorities: p.spec.Authorities}
	}
	if p.socket != "" {
		c.Listen, c.PeerOutside = "take:"+socketDir+"/"+socketName, true
	}
	b, err := json.Marshal(c)
	if err != nil {
		panic("docker: " + err.Error()) // strings and numbers only: cannot fail
	}
	return string(b)
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// environment is the kernel's: the image's, ours, the kernelspec's, the caller's, each over the one before.
func (p plan) environment() []string {
	env := map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
	for _, entry := range p.imageEnv {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	env["HOME"], env["USER"], env["LOGNAME"] = homeDir, "cellblock", "cellblock"
	maps.Copy(env, kernels.ThreadEnv(p.spec.Limits.CPUs))
	maps.Copy(env, p.spec.Kernelspec.Env)
	maps.Copy(env, p.spec.Env)
	entries := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		entries = append(entries, name+"="+env[name])
	}
	return entries
}
