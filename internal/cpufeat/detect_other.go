//go:build purego || !(amd64 || arm64)

package cpufeat

func detect() []Level { return []Level{Generic} }
