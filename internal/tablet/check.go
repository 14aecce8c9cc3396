package tablet

import (
	"context"
	"errors"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/rowset"
)

// Check reads every rowset in full. It verifies the checksums and zone maps of its files, the order
// of its keys, their agreement with bounds, key index and bloom file, its changes, and its counts.
// It calls found for each damaged rowset, with the block if it is known, and for each damaged row
// file and key directory, then checked; checked may be nil.
func (t *Tablet) Check(ctx context.Context, found func(m *rowset.Metadata, id block.ID, err error),
	checked func(m *rowset.Metadata)) error {
	return t.check(ctx, func(uint64) bool { return true }, found, func(d *rowset.DiskRowSet, m *rowset.Metadata) error {
		err := damageOnly(d.CheckRowFile(), func(err error) { found(m, m.RowFile, err) })
		if err == nil {
			err = damageOnly(d.CheckKeyDirectory(), func(err error) { found(m, m.KeyDirectory, err) })
		}
		if err == nil && checked != nil {
			checked(m)
		}
		return err
	})
}

// CheckDeep calls DiskRowSet.CheckDeep of every rowset, then checked.
func (t *Tablet) CheckDeep(ctx context.Context, found func(m *rowset.Metadata, id block.ID, err error),
	checked func(m *rowset.Metadata)) error {
	return t.eachSet(ctx, func(d *rowset.DiskRowSet, m *rowset.Metadata) error {
		if err := d.CheckDeep(ctx, func(id block.ID, err error) { found(m, id, err) }); err != nil {
			return err
		}
		checked(m)
		return nil
	})
}

// check is Check without row files and key directories, for the rowsets whose IDs want reports. It
// calls then, unless it is nil, after each rowset.
func (t *Tablet) check(ctx context.Context, want func(id uint64) bool,
	found func(m *rowset.Metadata, id block.ID, err error),
	then func(d *rowset.DiskRowSet, m *rowset.Metadata) error) error {
	return t.eachSet(ctx, func(d *rowset.DiskRowSet, m *rowset.Metadata) error {
		if !want(m.ID) {
			return nil
		}
		id, err := d.CheckFiles()
		if err == nil {
			err = d.CheckRows(ctx)
		}
		err = damageOnly(err, func(err error) { found(m, id, err) })
		if err == nil && then != nil {
			err = then(d, m)
		}
		return err
	})
}

// eachSet calls use with each rowset until the first error.
func (t *Tablet) eachSet(ctx context.Context, use func(d *rowset.DiskRowSet, m *rowset.Metadata) error) error {
	st, err := t.acquire()
	if err != nil {
		return err
	}
	defer st.release()
	for _, d := range st.tree.Sets {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := use(d, d.Metadata()); err != nil {
			return err
		}
	}
	return nil
}

// damageOnly calls found with an error that is damage, and returns any other.
func damageOnly(err error, found func(err error)) error {
	if errors.Is(err, fault.ErrCorrupt) || errors.Is(err, fault.ErrUnsupported) {
		found(err)
		return nil
	}
	return err
}
