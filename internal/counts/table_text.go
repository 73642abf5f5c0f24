//go:build !packed

package counts

import _ "embed"

//go:embed kernels.json
var tableEmbedded string

// tableText is what kernels do, by row and quantity: features of a launch, each with a number to take it times.
func tableText() string { return tableEmbedded }
