package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"
)

// podmanInfo is what Podman says about itself in its own API. In Docker's it leaves out that it runs without root, names
// the default data folder instead of its own, and claims every limit that the host could enforce.
type podmanInfo struct {
	Host struct {
		CgroupControllers []string `json:"cgroupControllers"`
		CgroupVersion     string   `json:"cgroupVersion"`
		Security          struct {
			Rootless bool `json:"rootless"`
		} `json:"security"`
	} `json:"host"`
	Store struct {
		GraphRoot string `json:"graphRoot"`
	} `json:"store"`
}

// askPodman asks the Podman behind api.
func askPodman(ctx context.Context, api *client.Client) (podmanInfo, error) {
	var info podmanInfo
	response, err := get(ctx, api, "/v4.0.0/libpod/info")
	if err != nil {
		return info, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return info, fmt.Errorf("podman says %s", response.Status)
	}
	return info, json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&info)
}

// correct makes what Podman says in Docker's words true.
func (p podmanInfo) correct(info *system.Info) {
	if p.Host.Security.Rootless && !hasSecurity(*info, "rootless") {
		info.SecurityOptions = append(slices.Clone(info.SecurityOptions), "name=rootless")
	}
	if p.Store.GraphRoot != "" {
		info.DockerRootDir = p.Store.GraphRoot
	}
	if p.Host.CgroupVersion == "v2" {
		has := func(controller string) bool { return slices.Contains(p.Host.CgroupControllers, controller) }
		info.MemoryLimit, info.SwapLimit = has("memory"), has("memory")
		info.PidsLimit, info.CPUCfsQuota = has("pids"), has("cpu")
	}
}
