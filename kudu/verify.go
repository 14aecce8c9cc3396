package kudu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudufs"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kuduschema"
	"github.com/oribi-db/oribi/internal/kuduwal"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// Finding is one defect that Verify found.
type Finding struct {
	Tablet  string // its ID, "" if none is concerned
	File    string
	Offset  int64    // in File, -1 for all of it
	Block   block.ID // 0 if none is concerned
	Problem string
}

// Verify reads and checks everything that the directory has: instance files, containers and their
// records, superblocks, consensus metadata, every block that a superblock names, keys against
// bounds, bloom files and indexes, counts against rows, and the logs. It calls report for each
// defect and continues. Blocks that no superblock names are not a defect: a server leaves them when
// it ends during a flush. It returns an error only if it could not check everything.
func (d *Directory) Verify(ctx context.Context, report func(Finding)) error {
	quiet := *d // what replay warns about is reported
	quiet.warn = func(string) {}
	v := &verifier{d: &quiet, ctx: ctx, report: report, named: map[block.ID]string{}}
	for _, p := range d.fs.Problems() {
		report(Finding{File: p.File, Offset: p.Offset, Block: p.Block, Problem: p.Err.Error()})
	}
	for _, uuid := range d.fs.MissingDirectories() {
		report(Finding{File: d.fs.Roots[0].Dir, Offset: -1, Problem: "data directory " + uuid + " is missing"})
	}
	if err := v.strays(); err != nil {
		return fmt.Errorf("kudu: verify: %w", err)
	}
	if err := v.lostTablets(); err != nil {
		return fmt.Errorf("kudu: verify: %w", err)
	}
	for i := range d.tablets {
		if err := v.tablet(&d.tablets[i]); err != nil {
			return fmt.Errorf("kudu: verify: tablet %s: %w", d.tablets[i].ID, err)
		}
	}
	return nil
}

type verifier struct {
	d      *Directory
	ctx    context.Context
	report func(Finding)
	named  map[block.ID]string // by which rowset
}

// damage reports err if it is damage, and returns any other error.
func (v *verifier) damage(err error, f Finding) error {
	if !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
		return err
	}
	f.Problem += err.Error()
	v.report(f)
	return nil
}

// strays reports what is next to the superblocks and is none.
func (v *verifier) strays() error {
	_, others, err := v.d.fs.Tablets()
	for _, name := range others {
		v.report(Finding{File: v.d.fs.SuperblockPath(name), Offset: -1,
			Problem: "not a superblock: its name is not the ID of a tablet"})
	}
	return err
}

// lostTablets reports tablets that have a log or consensus metadata and no superblock.
func (v *verifier) lostTablets() error {
	known := map[string]bool{}
	for i := range v.d.tablets {
		known[v.d.tablets[i].ID] = true
	}
	logs, _ := v.d.fs.LogDirs("x")
	for _, dir := range []string{filepath.Dir(v.d.fs.ConsensusPath("x")), filepath.Dir(logs)} {
		names, err := v.d.fs.FS().List(dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			id := strings.TrimSuffix(name, ".recovery")
			if kudufs.IsTabletID(id) && !known[id] {
				known[id] = true
				v.report(Finding{Tablet: id, File: filepath.Join(dir, name), Offset: -1,
					Problem: "the tablet has no superblock"})
			}
		}
	}
	return nil
}

func (v *verifier) tablet(t *Tablet) error {
	super := Finding{Tablet: t.ID, File: v.d.fs.SuperblockPath(t.ID), Offset: -1}
	if t.Err != nil {
		return v.damage(t.Err, super)
	}
	if _, err := v.d.fs.Consensus(t.ID); err != nil {
		if err := v.damage(err, Finding{Tablet: t.ID, File: v.d.fs.ConsensusPath(t.ID), Offset: -1}); err != nil {
			return err
		}
	}
	switch kudupb.TabletDataState(t.super.GetTabletDataState()) {
	case kudupb.TabletDataState_TABLET_DATA_READY:
	case kudupb.TabletDataState_TABLET_DATA_TOMBSTONED, kudupb.TabletDataState_TABLET_DATA_DELETED:
		return nil
	default:
		super.Problem = "the tablet is " + t.State + ": it was not copied completely"
		v.report(super)
		return nil
	}
	s, err := kuduschema.FromMessage(t.super.Schema)
	if err != nil {
		return v.damage(err, super)
	}
	intact := true
	for _, m := range t.super.Rowsets {
		ok, err := v.rowset(t, s, m)
		if err != nil {
			return err
		}
		intact = intact && ok
	}
	return v.log(t, s, intact)
}

// log checks the log of a tablet: all of it if its rowsets are intact, otherwise its entries.
func (v *verifier) log(t *Tablet, s *schema.Schema, intact bool) error {
	tab := &tablet{id: t.ID, fs: v.d.fs, super: t.super}
	dir, err := logDirectory(tab.fs, tab.id)
	if err != nil {
		return err
	}
	if intact {
		if opened, err := v.d.openTablet(v.ctx, t, s); err == nil {
			tab.findings = opened.findings
			defer opened.close()
			if err := v.rows(opened); err != nil {
				return err
			}
		} else if err := v.logDamage(t, dir, err); err != nil {
			return err
		}
	} else {
		sum, err := readLog(v.d.fs.FS(), dir, kuduwal.Handler{
			Tablet: t.ID,
			Begin:  func(*kudupb.LogSegmentHeaderPB) error { return nil },
			Apply:  func(*kuduwal.Operation) error { return v.ctx.Err() },
			Orphan: func(*kudupb.CommitMsg) error { return nil },
		})
		if err == nil {
			tab.findings = append(sum.Findings, tab.missingEntries(dir, sum)...)
		} else if err := v.logDamage(t, dir, err); err != nil {
			return err
		}
	}
	for _, f := range tab.findings {
		v.report(Finding{Tablet: t.ID, File: f.Path, Offset: f.Offset, Problem: f.Problem})
	}
	return nil
}

func (v *verifier) logDamage(t *Tablet, dir string, err error) error {
	f := Finding{Tablet: t.ID, File: dir, Offset: -1}
	var at *kuduwal.Error
	if errors.As(err, &at) {
		f.File, f.Offset = at.Path, at.Offset
	}
	return v.damage(err, f)
}

// rows checks that the rows of a tablet, which is open, ascend: that no key is live twice.
func (v *verifier) rows(t *tablet) error {
	table := tableOf(t)
	it, err := table.Scan(scan.Options{Snapshot: mvcc.Everything, Keys: true}, true)
	if err != nil {
		return err
	}
	f := Finding{Tablet: t.id, File: v.d.fs.SuperblockPath(t.id), Offset: -1}
	n, err := scan.CountAscending(v.ctx, it, func(key []byte) string { return fmt.Sprintf("%x", key) })
	if err != nil {
		return v.damage(err, f)
	}
	if want := t.liveRows(); t.super.GetSupportsLiveRowCount() && n != want {
		f.Problem = fmt.Sprintf("%d rows, the counts say %d", n, want)
		v.report(f)
	}
	return nil
}

// rowset checks a rowset as of its last flush. It reports whether it is intact.
func (v *verifier) rowset(t *Tablet, s *schema.Schema, m *kudupb.RowSetDataPB) (intact bool, err error) {
	if intact, err = v.blocks(t, s, m); !intact || err != nil {
		return intact, err
	}
	f := Finding{Tablet: t.ID, File: v.d.fs.SuperblockPath(t.ID), Offset: -1,
		Problem: fmt.Sprintf("rowset %d: ", m.GetId())}
	set, err := openRowSet(s, m, rowset.Options{Blocks: blocks{v.d.fs}, Cache: v.d.cache})
	if err != nil {
		return false, v.damage(err, f)
	}
	defer set.Unref()
	if err := set.CheckRows(v.ctx); err != nil {
		return false, v.damage(err, f)
	}
	if !sameBounds(m, set.Metadata()) {
		f.Problem += "the bounds in the superblock are not those in the key file"
		v.report(f)
	}
	return true, nil
}

// sameBounds reports whether the bounds of a rowset in the superblock, which a server that is set
// to write them uses instead of those in the key file, are equal to these.
func sameBounds(m *kudupb.RowSetDataPB, keyFile *rowset.Metadata) bool {
	return (m.MinEncodedKey == nil || bytes.Equal(m.MinEncodedKey, keyFile.MinKey)) &&
		(m.MaxEncodedKey == nil || bytes.Equal(m.MaxEncodedKey, keyFile.MaxKey))
}
