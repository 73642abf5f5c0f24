//go:build purego || !amd64

package cpufeat

func detect() []Level { return []Level{Generic} }
