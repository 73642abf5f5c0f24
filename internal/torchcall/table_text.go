//go:build !packed

package torchcall

import _ "embed"

//go:embed table.json
var tableEmbedded string

// tableText is what the generator makes.
func tableText() string { return tableEmbedded }
