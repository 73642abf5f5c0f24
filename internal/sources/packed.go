//go:build packed

package sources

import _ "embed"

// packed is an archive of package tables.
//
//go:embed sources.pack
var packed string
