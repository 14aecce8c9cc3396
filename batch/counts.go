package batch

// TestCounts counts the cells that a predicate tested, by how it was decided whether they pass.
// Tested is the sum of all fields after Passed. The zero value is ready for use. Not safe for
// concurrent use.
type TestCounts struct {
	Tested int64 // selected cells before the test
	Passed int64 // selected cells after it

	Schema     int64 // by the schema: the column is not nullable, or all its cells have the default
	ZoneMap    int64 // by the bounds of their cblock
	Dictionary int64 // by the words of a dictionary, which pass either all or not at all
	Planes     int64 // by planes that are constant in a chunk
	Stored     int64 // by the values as they are stored
	Decoded    int64 // by decoded cells
	Changed    int64 // by the new cell of a change
	Memory     int64 // by the cells of rows in a MemRowSet
	Untested   int64 // not at all: the predicate rested (see Predicate.MayRest)
}

// Add adds o to c.
func (c *TestCounts) Add(o *TestCounts) {
	c.Tested += o.Tested
	c.Passed += o.Passed
	c.Schema += o.Schema
	c.ZoneMap += o.ZoneMap
	c.Dictionary += o.Dictionary
	c.Planes += o.Planes
	c.Stored += o.Stored
	c.Decoded += o.Decoded
	c.Changed += o.Changed
	c.Memory += o.Memory
	c.Untested += o.Untested
}

// BlockUse classifies what a scan did with a cblock. The uses ascend by effort.
type BlockUse uint8

// The uses of a cblock.
const (
	BlockOutside BlockUse = iota // nothing: it has no row of the scan's range
	BlockSkipped                 // nothing: no row of it was left, or the scan ended before
	BlockZoneMap                 // decided a predicate or an extreme by its bounds, without reading it
	BlockStored                  // computed with its values as they are stored
	BlockDecoded                 // decoded some of its cells
	BlockUses                    // the number of uses
)

// For reports whether p is q, or the test that replaces q while it rests.
func (p *Predicate) For(q *Predicate) (ok, rests bool) {
	if p == q {
		return true, false
	}
	rests = q.rest != nil && p == &q.rest.notNull
	return rests, rests
}
