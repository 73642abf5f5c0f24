//go:build packed

package ptx

import (
	_ "embed"

	"github.com/warpline-ml/warpline/internal/tables"
)

//go:embed forms.txt.lzma
var tableEmbedded string

// tableText is made by bench/ptx, which asks ptxas about every form of grammar.txt.
func tableText() string { return tables.Unpack(tableEmbedded) }

func init() { tables.Keep("internal/ptx/forms.txt.lzma", tableEmbedded) }
