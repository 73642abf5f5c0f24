//go:build !packed

package ptx

import _ "embed"

//go:embed forms.txt
var tableEmbedded string

// tableText is made by bench/ptx, which asks ptxas about every form of grammar.txt.
func tableText() string { return tableEmbedded }
