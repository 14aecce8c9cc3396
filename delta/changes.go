package delta

import (
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/schema"
)

// Changes hands every delta of the file to use, in the order of the file, checked against s as in
// Tracker.Schema (nil: no column is known). A delta holds during the call, its list as long as it
// is referenced. The first error of use ends it and is returned. Errors: ErrCorrupt.
func (f *File) Changes(s *schema.Schema, use func(d change.Delta) error) error {
	if s == nil {
		s = noSchema
	}
	c := cursor{file: f, schema: s}
	for {
		more, err := c.load()
		if !more || err != nil {
			return err
		}
		for i := range c.block.rows {
			if err := use(c.block.delta(i)); err != nil {
				return err
			}
		}
	}
}
