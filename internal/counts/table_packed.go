//go:build packed

package counts

import (
	_ "embed"

	"github.com/warpline-ml/warpline/internal/tables"
)

//go:embed kernels.json.lzma
var tableEmbedded string

// tableText is what kernels do, by row and quantity: features of a launch, each with a number to take it times.
func tableText() string { return tables.Unpack(tableEmbedded) }

func init() { tables.Keep("internal/counts/kernels.json.lzma", tableEmbedded) }
