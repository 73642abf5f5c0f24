//go:build packed

package torchcall

import (
	_ "embed"

	"github.com/warpline-ml/warpline/internal/tables"
)

//go:embed table.json.lzma
var tableEmbedded string

// tableText is what the generator makes.
func tableText() string { return tables.Unpack(tableEmbedded) }
