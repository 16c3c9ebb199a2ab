#!/usr/bin/env bash
# Makes what is handed out: an archive for each platform with the programs, the documents, manual pages, completions, service files and a
# bill of materials, and the checksums of all of them, in dist/.
#
#   PLATFORMS  in Go's words; default: linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
set -euo pipefail
cd "$(dirname "$0")/.."
PLATFORMS=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64}
version=$(git describe --tags --always --dirty 2>/dev/null || echo dev)
export CGO_ENABLED=0
build() { # os arch output package
	GOOS=$1 GOARCH=$2 go build -buildvcs=true -trimpath -ldflags "-s -w -X main.version=$version" -o "$3" "./cmd/$4"
}

rm -rf dist
mkdir -p dist/common/man dist/common/completions
build "$(go env GOHOSTOS)" "$(go env GOHOSTARCH)" dist/host/cellblock cellblock
dist/host/cellblock man dist/common/man
for shell in bash zsh fish powershell; do dist/host/cellblock completion "$shell" >"dist/common/completions/cellblock.$shell"; done
cp -r README.md LICENSE SECURITY.md docs dist/common/
cp packaging/cellblock.service dist/common/

# A server finds the shim for its engine's processor beside itself, whatever it runs on.
for arch in amd64 arm64; do build linux "$arch" "dist/common/cellblock-shim-linux-$arch" cellblock-shim; done

for platform in $PLATFORMS; do
	os=${platform%/*} arch=${platform#*/}
	name=cellblock-$version-$os-$arch
	exe=cellblock
	[ "$os" = windows ] && exe=cellblock.exe
	mkdir "dist/$name"
	cp -r dist/common/. "dist/$name/"
	build "$os" "$arch" "dist/$name/$exe" cellblock
	[ "$os" != linux ] || build linux "$arch" "dist/$name/cellblock-shim" cellblock-shim
	dist/host/cellblock version --sbom "dist/$name/$exe" >"dist/$name/sbom.cdx.json"
	tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -C dist -czf "dist/$name.tar.gz" "$name"
	rm -rf "dist/${name:?}"
done
rm -rf dist/common dist/host
(cd dist && sha256sum ./*.tar.gz >SHA256SUMS)
ls -lh dist
