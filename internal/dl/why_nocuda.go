//go:build nocuda

package dl

const unavailable = "this program was built with the tag nocuda, without a way to open shared libraries"
