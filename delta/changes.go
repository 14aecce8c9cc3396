package delta

import (
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/schema"
)

// Changes calls use for every delta of the file, in file order. Change lists are checked against s
// as described at Tracker.Schema; nil knows no columns. A delta is valid during the call, its list
// as long as it is referenced. Changes stops at the first error of use and returns it. Errors:
// ErrCorrupt.
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
		for d := range c.block.entriesOf(0, c.block.entries) {
			if err := use(d); err != nil {
				return err
			}
		}
	}
}
