//go:build !amd64 || purego

package encoding

// load sets dst to the cells of a group.
func (g *gatherer) load(c *cellGroup, dst *[groupCells]uint64) { g.loadBits(c, dst) }

// maxGathered is the number of selected cells of a chunk up to which a sum is computed from the
// cells and not from the number of selected bits in each plane. One bit of a cell takes about as
// long as an eighth of a plane.
const maxGathered = 8

// gathers reports whether products of count cells are to be computed from cells of p and q planes,
// and not from pairs of planes.
func gathers(count, p, q int) bool { return count*(p+q) <= maxGathered*p*q }
