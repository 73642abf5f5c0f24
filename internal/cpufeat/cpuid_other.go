//go:build purego || !amd64

package cpufeat

func identify() ID { return ID{} }
