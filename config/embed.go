package config

import "embed"

// CRDs are the CustomResourceDefinitions of scute, in the folder crd.
//
//go:embed crd/*.yaml
var CRDs embed.FS
