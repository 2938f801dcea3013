package config

import "embed"

// CRDs are the definitions of scute's resources, in the folder crd.
//
//go:embed crd/*.yaml
var CRDs embed.FS
