//go:build purego

package cpufeat

const assembly = false
