package main

import (
	"os"
	"time"

	"cellblock/images/derived"
	"cellblock/internal/fault"
)

// ImagesBuildConfig says how images with further packages are made (derived.Config), and how long they are kept.
type ImagesBuildConfig struct {
	// PipIndexURL, NpmRegistry and NugetSource are where packages come from; empty: the managers' own.
	PipIndexURL string `koanf:"pip_index_url"`
	NpmRegistry string `koanf:"npm_registry"`
	NugetSource string `koanf:"nuget_source"`
	// Proxy and NoProxy are for builds, CAFile has certificates that they trust besides the image's own.
	Proxy   string `koanf:"proxy"`
	NoProxy string `koanf:"no_proxy"`
	CAFile  string `koanf:"ca_file"`
	// Network is the engine's network of builds; empty: its bridge.
	Network string `koanf:"network"`
	// Scripts lets packages run programs of their own as they are installed.
	Scripts bool `koanf:"scripts"`
	// Max is how many images are made at once, Limit how long each may take, Memory what it may use, MaxBytes by how much an image
	// may grow.
	Max      int           `koanf:"max"`
	Limit    time.Duration `koanf:"limit"`
	Memory   Size          `koanf:"memory"`
	MaxBytes Size          `koanf:"max_bytes"`
	// MinFree is how much of the engine's disk builds leave alone; 0: nothing.
	MinFree Size `koanf:"min_free"`
	// KeepAge is how long an image is kept that no session uses, KeepBytes what all of them may take; 0: no limit.
	KeepAge   time.Duration `koanf:"keep_age"`
	KeepBytes Size          `koanf:"keep_bytes"`
}

// imagesBuildDefaults are the lowest layer's.
var imagesBuildDefaults = map[string]any{
	"images_build.pip_index_url": "", "images_build.npm_registry": "", "images_build.nuget_source": "",
	"images_build.proxy": "", "images_build.no_proxy": "", "images_build.ca_file": "", "images_build.network": "", "images_build.scripts": false,
	"images_build.max": 2, "images_build.limit": "15m", "images_build.memory": "2GB", "images_build.max_bytes": "4GB", "images_build.min_free": "1GB",
	"images_build.keep_age": "30d", "images_build.keep_bytes": "20GB",
}

// minBuildMemory is the least that a package manager can work with.
const minBuildMemory = 256 << 20

func (c ImagesBuildConfig) check() error {
	if c.Max < 1 || c.Max > 32 {
		return fault.New(fault.Invalid, "configuration: images_build.max is %d", c.Max).WithHint("Use a number from 1 to 32.")
	}
	if c.Limit < time.Minute || c.Limit > 24*time.Hour {
		return fault.New(fault.Invalid, "configuration: images_build.limit is %s", c.Limit).WithHint("Use 1m to 24h, such as 15m.")
	}
	if c.Memory < minBuildMemory || c.MaxBytes < 1<<20 {
		return fault.New(fault.Invalid, "configuration: images_build.memory is %d and images_build.max_bytes is %d", c.Memory, c.MaxBytes).
			WithHint("Use at least 256MB and 1MB, such as 2GB and 4GB.")
	}
	if c.MinFree < 0 {
		return fault.New(fault.Invalid, "configuration: images_build.min_free is %d", c.MinFree).WithHint("Use a size, such as 1GB, or 0 to leave nothing.")
	}
	if c.KeepAge != 0 && c.KeepAge < time.Hour || c.KeepBytes < 0 {
		return fault.New(fault.Invalid, "configuration: images_build.keep_age is %s and images_build.keep_bytes is %d", c.KeepAge, c.KeepBytes).
			WithHint("Use at least 1h, and a size, such as 30d and 20GB; or 0 for no limit.")
	}
	sources, err := c.sources()
	if err != nil {
		return err
	}
	return sources.Check()
}

// sources is the part of the configuration that says where packages come from.
func (c ImagesBuildConfig) sources() (derived.Sources, error) {
	s := derived.Sources{
		PipIndex: c.PipIndexURL, NpmRegistry: c.NpmRegistry, NugetSource: c.NugetSource,
		Proxy: c.Proxy, NoProxy: c.NoProxy, Network: c.Network, Scripts: c.Scripts,
	}
	if c.CAFile == "" {
		return s, nil
	}
	var err error
	if s.Authorities, err = os.ReadFile(c.CAFile); err != nil {
		return s, fault.New(fault.Invalid, "configuration: images_build.ca_file: %w", err).WithHint("Name a PEM file with certificates.")
	}
	return s, nil
}
