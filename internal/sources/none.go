//go:build !packed

package sources

const packed = ""
