//go:build packed

package ledger

import (
	_ "embed"

	"github.com/warpline-ml/warpline/internal/tables"
)

//go:embed answers.txt.lzma
var tableEmbedded string

// tableText is the answers of probes, by their names.
func tableText() string { return tables.Unpack(tableEmbedded) }
