package warp

// Tile is a matrix of at most 16 rows, tileRow elements apart.
type Tile [16 * TileRow]float64

// TileRow is the distance of the rows of a Tile.
const TileRow = 32
