package oribi

import (
	"fmt"

	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/schema"
)

// SetType changes the type of a column that is not in the key, in all rows and all their versions:
// a read as of an earlier time returns the value of that time, in the new type. Of to, only Type,
// Element, Precision, Scale, and Length count: the column keeps its name, its place, its
// nullability, and the rest.
//
// Each value of each version that the table's history keeps must fit exactly. Otherwise Alter
// changes nothing and returns ErrRow, with the key, the time, and the value of the first row that
// does not fit. Numbers become numbers of the same value. A date becomes the timestamp of its
// midnight in UTC, and such a timestamp becomes a date. A string becomes a value of any type by the
// rules of a field of a CSV file, and a value of any type becomes the string that the command
// prints. Arrays change element by element. Other pairs of types are ErrUnsupported. Rows must not
// expire by the column, also not in the table's history.
//
// Alter compacts the table while writers continue, and then rewrites all rows while writers wait.
// Until it ends it needs the space of the table twice. Operations that were added to a write batch
// or a transaction before it fail with ErrConflict. The struct type of a TableOf must have the new
// type: call Typed again.
func SetType(column string, to schema.Column) Alteration {
	return func(d *draft) error {
		if err := d.keepsExpiry(column); err != nil {
			return err
		}
		var convert tablet.Conversion
		before, after, err := d.schema.Retype(column, to, func(from, to *schema.Column) (err error) {
			if convert, err = bind.Conversion(from, to); err != nil {
				return err
			}
			if from.Default != nil {
				to.Default, err = convert([]byte{}, from.Default)
			}
			switch added := d.row.Schema.IndexID(from.ID) < 0; {
			case err != nil:
			case !added:
				to.ReadDefault = to.Default // all rows get a cell
			case from.ReadDefault != nil:
				to.ReadDefault, err = convert([]byte{}, from.ReadDefault)
			}
			if err != nil {
				return fmt.Errorf("the default does not fit %s: %w: %w", to.TypeName(), err, fault.ErrSchema)
			}
			return nil
		})
		if err != nil || before == after {
			return err
		}
		for i := range d.retypes {
			if r := &d.retypes[i]; r.To == before { // by an earlier change of the same Alter
				first := r.Convert
				r.To, r.Convert = after, func(dst, cell []byte) ([]byte, error) {
					between, err := first([]byte{}, cell)
					if err != nil {
						return dst, err
					}
					return convert(dst, between)
				}
				return nil
			}
		}
		d.retypes = append(d.retypes, tablet.Retype{From: before, To: after, Convert: convert})
		return nil
	}
}
