//go:build !purego

package lanes

import "github.com/warpline-ml/warpline/internal/cpufeat"

var engines = map[cpufeat.Level]*Engine{
	cpufeat.AVX512BF16: {lanes512, &has512},
	cpufeat.AVX512:     {lanes512, &has512},
	cpufeat.AVX2:       {lanes256, &has256},
}
