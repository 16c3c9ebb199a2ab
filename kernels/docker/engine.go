package docker

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"
	"github.com/docker/go-units"
)

// engine is what we know of the engine once it has answered.
type engine struct {
	api  *client.Client
	host string
	kind string
	info system.Info
	// carrier and files are the choices made: never auto.
	carrier Carrier
	files   Files
	// own is the volume of whose folders workspaces are, where files is FilesShared.
	own  *ownVolume
	user identity
	// ulimits are set on every container that does not ask for others.
	ulimits []*units.Ulimit
	// weaknesses are sentences about what this engine does not enforce.
	weaknesses []string
}

// identity says who a kernel is, on both sides.
type identity struct {
	// uid and gid are the server's names for it: the owner of workspaces.
	uid, gid int
	// user is what the container is told, "uid:gid", and userns its user namespace mode.
	user, userns string
}

// numbers are the kernel's user and group within a container.
func (i identity) numbers() (uid, gid int, err error) {
	_, err = fmt.Sscanf(i.user, "%d:%d", &uid, &gid)
	return uid, gid, err
}

// meet connects to the engine and learns what it can do.
func meet(ctx context.Context, cfg Config) (*engine, error) {
	host, err := cfg.Host, error(nil)
	if host == "" {
		if host, _, err = Find(ctx); err != nil {
			return nil, err
		}
	}
	api, err := connect(host)
	if err != nil {
		return nil, err
	}
	e := &engine{api: api, host: host}
	if err := e.learn(ctx); err != nil {
		_ = api.Close()
		return nil, engineError(host, err)
	}
	e.choose(cfg)
	return e, nil
}

// learn asks the engine what it is.
func (e *engine) learn(ctx context.Context) (err error) {
	if e.kind, err = identify(ctx, e.api); err != nil {
		return err
	}
	if e.info, err = e.api.Info(ctx); err != nil || e.kind != KindPodman {
		return err
	}
	podman, err := askPodman(ctx, e.api)
	if err == nil {
		podman.correct(&e.info)
	}
	return err
}

// choose settles what depends on the engine's place and nature.
func (e *engine) choose(cfg Config) {
	place := locate(e.host, e.info)
	e.carrier, e.files = cfg.Carrier, cfg.Files
	if e.carrier == CarrierAuto {
		e.carrier = CarrierStdio
		if place == placeHere {
			e.carrier = CarrierSocket
		}
	}
	if e.files == FilesAuto {
		e.files = FilesBind
		if place == placeAway && e.carrier != CarrierSocket {
			e.files = FilesVolume
		}
	}
	e.user = chooseIdentity(cfg, e.kind, e.info)
	e.weaknesses = engineWeaknesses(e.info)
	if e.kind == KindPodman && place == placeHere {
		e.ulimits = ownUlimits()
	}
}

// place is where the engine is, seen from the server.
type place int

const (
	// placeAway: another machine, or the same one seen from within a container. No folder is shared.
	placeAway place = iota
	// placeVM: a virtual machine on this one that is shown our folders but not our sockets (Docker Desktop, Colima).
	placeVM
	// placeHere: this very system.
	placeHere
)

// locate tells where the engine is. One behind a socket of this system may still be in a virtual machine, or outside of
// the container that the server runs in; an engine whose data folder is here is here itself.
func locate(host string, info system.Info) place {
	switch {
	case !strings.HasPrefix(host, "unix://") && !strings.HasPrefix(host, "npipe://"):
		return placeAway
	case runtime.GOOS != "linux" || strings.Contains(info.OperatingSystem, "Docker Desktop"):
		return placeVM
	case !exists(info.DockerRootDir):
		return placeAway
	}
	return placeHere
}

// chooseIdentity says who kernels are.
//
// An engine that runs as root takes numbers as they are. Rootless Podman maps our own to itself (keep-id). Rootless
// Docker cannot: there the container's root is our own user outside, without any right that the user lacks, and the only
// one that can write what the user owns. With a user namespace for all containers (userns-remap) the engine's folder is
// named after the first of the mapped ids.
func chooseIdentity(cfg Config, kind string, info system.Info) identity {
	uid, gid := cfg.runAs()
	id := identity{uid: uid, gid: gid, user: user(uid, gid)}
	switch rootless := hasSecurity(info, "rootless"); {
	case rootless && kind == KindPodman:
		id.userns = "keep-id"
	case rootless:
		id.user = user(0, 0)
	case hasSecurity(info, "userns"):
		if firstUID, firstGID, ok := remap(info.DockerRootDir); ok {
			id.uid, id.gid = firstUID+uid, firstGID+gid
		}
	}
	return id
}

func user(uid, gid int) string { return strconv.Itoa(uid) + ":" + strconv.Itoa(gid) }

// remap reads the first mapped ids from the last element of the engine's data folder, "231072.231072".
func remap(dir string) (uid, gid int, ok bool) {
	u, g, found := strings.Cut(filepath.Base(dir), ".")
	uid, err1 := strconv.Atoi(u)
	gid, err2 := strconv.Atoi(g)
	return uid, gid, found && err1 == nil && err2 == nil
}

// hasSecurity reports whether the engine names a security option: "seccomp", "rootless", "userns".
func hasSecurity(info system.Info, name string) bool {
	return slices.ContainsFunc(info.SecurityOptions, func(option string) bool {
		return strings.HasPrefix(option+",", "name="+name+",")
	})
}

// image returns what the engine knows about an image.
func (e *engine) image(ctx context.Context, name string) (image.InspectResponse, error) {
	inspect, err := e.api.ImageInspect(ctx, name)
	if err != nil {
		return inspect, imageError(e.host, name, err)
	}
	return inspect, nil
}

// goarch translates the engine's name of its processor into Go's.
func goarch(arch string) string {
	switch arch {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	case "armv6l", "armv7l":
		return "arm"
	}
	return arch
}
