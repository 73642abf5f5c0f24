//go:build !packed

package ledger

import _ "embed"

//go:embed answers.txt
var tableEmbedded string

// tableText is the answers of probes, by their names.
func tableText() string { return tableEmbedded }
