//go:build !amd64 && !arm64

package cpufeat

func features() []string { return nil }
