//go:build taste

package tasks

func ofClusterctl() []Registration { return nil }
