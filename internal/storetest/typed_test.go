package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

type stamped struct {
	Created time.Time
	Digest  [16]byte
}

type account struct {
	ID    int64 `oribi:"id,key"`
	Email string
	Note  *string
	stamped
	cache int // not exported and without a tag: no column
}

// accountsTable creates a store in memory and a table of accounts.
func accountsTable(t *testing.T) (*oribi.Store, *oribi.TableOf[account]) {
	t.Helper()
	store := must.Get(oribi.Open("/typed", &oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(1)}))(t)
	t.Cleanup(func() { store.Close() })
	columns := must.Get(oribi.SchemaOf[account]())(t)
	table := must.Get(store.CreateTable("accounts", columns))(t)
	typed := must.Get(oribi.Typed[account](table))(t)
	return store, typed
}

func mustPut[T any](t *testing.T, table *oribi.TableOf[T], rows ...T) mvcc.Timestamp {
	t.Helper()
	return must.Get(table.Put(context.Background(), rows...))(t)
}

func TestTypedRowsWithEmbeddedStructsAndByteArrays(t *testing.T) {
	ctx := context.Background()
	_, accounts := accountsTable(t)
	var names []string
	for _, c := range accounts.Table.Schema().Columns {
		names = append(names, c.Name+" "+c.TypeName())
	}
	must.Equal(t, names, []string{"id int64", "email string", "note string", "created timestamp",
		"digest binary"}, "columns")
	note := "first"
	want := account{ID: 7, Email: "a@example.org", Note: &note,
		stamped: stamped{Created: time.Date(2024, 5, 6, 7, 8, 9, 123456000, time.UTC), Digest: [16]byte{1, 15: 2}}}
	mustPut(t, accounts, want, account{ID: 8, stamped: stamped{Created: want.Created}})
	must.Equal(t, must.Get(accounts.Get(ctx, 7))(t), want)
	want.Email = "b@example.org"
	mustPut(t, accounts, want) // it exists: the columns are set
	rows, err := accounts.GetMany(ctx, []any{8, 9, 7})
	if err != nil || len(rows) != 3 || rows[0].ID != 8 || rows[1] != nil || !reflect.DeepEqual(*rows[2], want) {
		t.Errorf("got %+v, %v", rows, err)
	}
	b := accounts.Table
	must.Get(patchDigest(ctx, b, 8, []byte("short")))(t)
	if _, err := accounts.Get(ctx, 8); !errors.Is(err, oribi.ErrSchema) ||
		!strings.Contains(err.Error(), `column "digest": 5 bytes, which a [16]uint8 cannot contain`) {
		t.Errorf("a value of another length: %v", err)
	}
}

func patchDigest(ctx context.Context, t *oribi.Table, id int64, digest []byte) (mvcc.Timestamp, error) {
	type patch struct {
		ID     int64 `oribi:"id,key"`
		Digest []byte
	}
	return oribi.Patch(ctx, t, patch{id, digest})
}

func TestPatchSetsTheColumnsOfItsStruct(t *testing.T) {
	ctx := context.Background()
	store, accounts := accountsTable(t)
	note := "kept"
	at := time.Unix(1700000000, 0).UTC()
	mustPut(t, accounts, account{ID: 1, Email: "a", Note: &note, stamped: stamped{Created: at}},
		account{ID: 2, Note: &note, stamped: stamped{Created: at}})
	type email struct {
		Email string
		ID    int64 // the key fields may come anywhere, and need no tag
	}
	must.Get(oribi.Patch(ctx, accounts.Table, email{"b", 1}, email{"c", 2}))(t)
	for id, want := range map[int64]string{1: "b", 2: "c"} {
		if got, err := accounts.Get(ctx, id); err != nil || got.Email != want ||
			*got.Note != note || !got.Created.Equal(at) {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	must.Fail(t, must.Err(oribi.Patch(ctx, accounts.Table, email{"d", 1}, email{"d", 3})), oribi.ErrNotFound,
		"a row that does not exist")
	must.Equal(t, must.Get(oribi.GetAs[email](ctx, accounts.Table, 1))(t), (email{"b", 1}), "after a refused patch")
	type noted struct {
		ID   int64
		Note *string
	}
	b := store.NewBatch()
	must.Do(t, oribi.PatchIn(b, accounts.Table, noted{ID: 1}))
	must.Get(b.Commit(ctx))(t)
	var got []string
	for row := range must.All(t, oribi.ScanAs[noted](ctx, accounts.Table)) {
		got = append(got, fmt.Sprint(row.ID, row.Note != nil))
	}
	must.Equal(t, got, []string{"1 false", "2 true"})
	type keyless struct{ Email string }
	if _, err := oribi.Patch(ctx, accounts.Table, keyless{"x"}); !errors.Is(err, oribi.ErrSchema) ||
		!strings.Contains(err.Error(), `no field for column "id"`) {
		t.Errorf("a patch without the key: %v", err)
	}
	if row, err := oribi.GetAs[keyless](ctx, accounts.Table, 2); err != nil || row.Email != "c" {
		t.Errorf("a read needs no key: %+v, %v", row, err)
	}
}

func TestTypedHistoryAndDiff(t *testing.T) {
	ctx := context.Background()
	store, accounts := accountsTable(t)
	first := mustPut(t, accounts, account{ID: 1, Email: "a"}, account{ID: 2, Email: "same"})
	second := mustPut(t, accounts, account{ID: 1, Email: "b"}, account{ID: 3, Email: "new"})
	b := store.NewBatch()
	accounts.InBatch(b).Delete(account{ID: 1})
	third := must.Get(b.Commit(ctx))(t)
	history := func(opts ...oribi.GetOption) (got []string) {
		for v := range must.All(t, accounts.History(ctx, 1, opts...)) {
			text := fmt.Sprint(v.Timestamp, " ", v.Kind)
			if v.Row != nil {
				text += " " + v.Row.Email
			}
			got = append(got, text)
		}
		return got
	}
	versions := []string{fmt.Sprint(third, " delete"), fmt.Sprint(second, " update b"), fmt.Sprint(first, " insert a")}
	must.Equal(t, history(), versions)
	must.Equal(t, history(oribi.AsOf(second)), versions[1:], "as of the second")
	var got []string
	for d := range must.All(t, accounts.Diff(ctx, first, third)) {
		email := func(a *account) string {
			if a == nil {
				return "none"
			}
			return a.Email
		}
		got = append(got, fmt.Sprint(d.Kind, " ", email(d.Before), " ", email(d.After)))
	}
	must.Equal(t, got, []string{"delete a none", "insert none new"})
	n := 0
	for _, err := range accounts.History(ctx, 99) {
		n++
		must.Fail(t, err, oribi.ErrNotFound, "a row that never existed")
	}
	must.Equal(t, n, 1, "steps")
}

// Each call commits all of its rows or none.
func TestTypedWritesOfRows(t *testing.T) {
	ctx := t.Context()
	_, accounts := accountsTable(t)
	emails := func() (list []string) {
		for row := range must.All(t, accounts.Scan(ctx)) {
			list = append(list, fmt.Sprint(row.ID, row.Email))
		}
		return list
	}
	first := must.Get(accounts.Insert(ctx, account{ID: 1, Email: "a"}, account{ID: 2, Email: "b"}))(t)
	must.Fail(t, must.Err(accounts.Insert(ctx, account{ID: 3}, account{ID: 2})), oribi.ErrKeyExists)
	must.Fail(t, must.Err(accounts.Update(ctx, account{ID: 1, Email: "x"}, account{ID: 3})), oribi.ErrNotFound)
	must.Fail(t, must.Err(accounts.Delete(ctx, account{ID: 1}, account{ID: 3})), oribi.ErrNotFound)
	must.Equal(t, emails(), []string{"1a", "2b"}, "after refused calls")
	if second := must.Get(accounts.Update(ctx, account{ID: 1, Email: "c"}))(t); second <= first {
		t.Error(second, first)
	}
	must.Get(accounts.Delete(ctx, account{ID: 2, Email: "ignored"}))(t)
	must.Equal(t, emails(), []string{"1c"})
	must.Equal(t, must.Get(accounts.Get(ctx, 2, oribi.AsOf(first)))(t).Email, "b")
}

func TestTypedIgnoreKinds(t *testing.T) {
	ctx := context.Background()
	store, accounts := accountsTable(t)
	mustPut(t, accounts, account{ID: 1, Email: "a"})
	b := store.NewBatch()
	accounts.InBatch(b).InsertIgnore(account{ID: 1, Email: "x"}, account{ID: 2, Email: "b"})
	accounts.InBatch(b).UpdateIgnore(account{ID: 2, Email: "c"}, account{ID: 3, Email: "x"})
	accounts.InBatch(b).DeleteIgnore(account{ID: 3})
	accounts.InBatch(b).UpsertIgnore(account{ID: 4, Email: "d"})
	must.Get(b.Commit(ctx))(t)
	var got []string
	for row, err := range accounts.Scan(ctx) {
		got = append(got, fmt.Sprint(row.ID, row.Email, err))
	}
	must.Equal(t, got, []string{"1a<nil>", "2c<nil>", "4d<nil>"})
}

func TestOpenTypedTablesFollowRenamedColumns(t *testing.T) {
	ctx := context.Background()
	store, accounts := accountsTable(t)
	type email struct {
		ID    int64
		Email string
	}
	mustPut(t, accounts, account{ID: 1, Email: "a"})
	must.Get(oribi.GetAs[email](ctx, accounts.Table, 1))(t)
	b := store.NewBatch()
	accounts.InBatch(b).Insert(account{ID: 2, Email: "b"})
	// The names are swapped: a binding by name would read one column for the other.
	alter(t, accounts.Table, oribi.RenameColumn("email", "was"), oribi.RenameColumn("id", "email"),
		oribi.RenameColumn("was", "id"))
	must.Get(b.Commit(ctx))(t)
	mustPut(t, accounts, account{ID: 3, Email: "c"})
	for id, want := range map[int64]string{1: "a", 2: "b", 3: "c"} {
		if got, err := accounts.Get(ctx, id); err != nil || got.ID != id || got.Email != want {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	if row, err := accounts.Table.Get(ctx, 3); err != nil || row["email"] != int64(3) || row["id"] != "c" {
		t.Errorf("got %v, %v", row, err)
	}
	// Without a handle, the current names apply.
	must.Fail(t, must.Err(oribi.GetAs[email](ctx, accounts.Table, 1)), oribi.ErrSchema,
		"a struct that is bound after the renames")
	alter(t, accounts.Table, oribi.DropColumn("note"),
		oribi.AddColumn(schema.Column{Name: "note", Type: schema.String, Nullable: true}))
	if _, err := accounts.Get(ctx, 1); !errors.Is(err, oribi.ErrSchema) ||
		!strings.Contains(err.Error(), `column "note" of table "accounts" was dropped`) {
		t.Errorf("a dropped column: %v", err)
	}
	must.Fail(t, must.Err(accounts.Put(ctx, account{ID: 4})), oribi.ErrSchema, "a dropped column")
}

func TestTypedInsertsNeedEveryRequiredColumn(t *testing.T) {
	ctx := context.Background()
	store, accounts := accountsTable(t)
	type noDigest struct {
		ID      int64
		Email   string
		Created time.Time
	}
	_, err := oribi.Typed[noDigest](accounts.Table)
	must.Fail(t, err, oribi.ErrSchema, "bound")
	must.Contain(t, err.Error(), `storetest.noDigest has no field for column "digest" of table "accounts"`, "bound")
	alter(t, accounts.Table, oribi.SetDefault("digest", make([]byte, 16)))
	rows := must.Get(oribi.Typed[noDigest](accounts.Table))(t)
	mustPut(t, rows, noDigest{ID: 1})
	if row, err := accounts.Get(ctx, 1); err != nil || row.Digest != [16]byte{} {
		t.Errorf("the default: %+v, %v", row, err)
	}
	alter(t, accounts.Table, oribi.SetDefault("digest", nil))
	b := store.NewBatch()
	rows.InBatch(b).Insert(noDigest{ID: 2})
	if err := b.Err(); !errors.Is(err, oribi.ErrSchema) || !strings.Contains(err.Error(), `"digest"`) {
		t.Errorf("known before Commit: %v", err)
	}
	b.Reset()
	rows.InBatch(b).Update(noDigest{ID: 1, Email: "a"})
	must.Do(t, must.Err(b.Commit(ctx)), "an update needs the key alone")
}

// Each form of a struct that cannot be a row is refused when it is bound, with the name of the
// field.
func TestInvalidStructsAreRefused(t *testing.T) {
	columns := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Uint32}, {Name: "u", Type: schema.Uint64},
		{Name: "n", Type: schema.Int64, Nullable: true},
		{Name: "b", Type: schema.Binary, Nullable: true},
		{Name: "d", Type: schema.DecimalType(9), Precision: 9, Scale: 2, Nullable: true}}, 1))(t)
	store, _ := accountsTable(t)
	table := must.Get(store.CreateTable("shapes", columns))(t)
	type inner struct{ N *int64 }
	type loop struct {
		K    uint32
		Next *loop
	}
	for name, c := range map[string]struct {
		bind func() error
		want string
	}{
		"not a struct": {func() error {
			_, err := oribi.Typed[int](table)
			return err
		}, "int is not a struct of columns"},
		"a value": {func() error {
			_, err := oribi.Typed[time.Time](table)
			return err
		}, "time.Time is not a struct of columns"},
		"no fields": {func() error { _, err := oribi.Typed[struct{ a int }](table); return err }, "no exported field"},
		"another case": {func() error {
			return bindAs[struct {
				K uint32 `Oribi:"k"`
			}](table)
		}, "malformed tag `Oribi:\"k\"`"},
		"unknown option": {func() error {
			return bindAs[struct {
				K uint32 `oribi:"k, key"`
			}](table)
		}, `.K: tag option " key": did you mean "key"?`},
		"a key option without a column": {func() error {
			return bindAs[struct {
				K uint32 `oribi:"-,key"`
			}](table)
		}, "a field that is no column has no options"},
		"tag, not exported": {func() error {
			return bindAs[struct {
				K uint32
				n *int64 `oribi:"n"`
			}](table)
		}, ".n: the field has a tag but is not exported"},
		"one column twice": {func() error {
			return bindAs[struct {
				K uint32
				L uint32 `oribi:"k"`
			}](table)
		}, `.L: column "k" is also the column of`},
		"embedded twice": {func() error {
			return bindAs[struct {
				K uint32
				N *int64
				inner
			}](table)
		}, `.inner.N: column "n" is also the column of`},
		"embedded pointer": {func() error {
			return bindAs[struct {
				K uint32
				*loop
			}](table)
		}, "embed the struct itself"},
		"recursion": {func() error { return bindAs[loop](table) }, `.Next: table "shapes" has no column "next"`},
		"unknown column": {func() error {
			return bindAs[struct {
				K     uint32
				Kount int64
			}](table)
		}, `.Kount: table "shapes" has no column "kount"`},
		"pointer to pointer": {func() error {
			return bindAs[struct {
				K uint32
				N **int64
			}](table)
		}, `.N: column "n": a **int64: one pointer is enough`},
		"NULL into a non-pointer": {func() error {
			return bindAs[struct {
				K uint32
				N int64
			}](table)
		}, "make it a *int64"},
		"too narrow": {func() error {
			return bindAs[struct {
				K uint32
				N *int32
			}](table)
		}, "a int32 does not fit type int64"},
		"signed for unsigned": {func() error {
			return bindAs[struct{ K int32 }](table)
		}, "a int32 does not fit type uint32"},
		"int64 for uint64": {func() error {
			return bindAs[struct{ U int64 }](table)
		}, "a int64 does not fit type uint64"},
		"interface": {func() error {
			return bindAs[struct {
				K uint32
				N *any
			}](table)
		}, "does not fit type int64"},
		"map": {func() error {
			return bindAs[struct{ B *map[string]int }](table)
		}, "does not fit type binary"},
		"array of bytes, no ptr": {func() error { return bindAs[struct{ B [4]byte }](table) }, "make it a *[4]uint8"},
		"float for a decimal": {func() error {
			return bindAs[struct{ D *float64 }](table)
		}, "does not fit type decimal(9,2)"},
		"key after others": {func() error {
			_, err := oribi.SchemaOf[struct {
				N int64
				K int64 `oribi:",key"`
			}]()
			return err
		}, "key fields come first"},
		"no key": {func() error {
			_, err := oribi.SchemaOf[struct{ N int64 }]()
			return err
		}, "has no key: tag its key fields"},
		"key of floats": {func() error {
			_, err := oribi.SchemaOf[struct {
				N float64 `oribi:",key"`
			}]()
			return err
		}, `column "n": type DOUBLE cannot be in a key`},
		"no type": {func() error {
			_, err := oribi.SchemaOf[struct {
				N int64 `oribi:",key"`
				C complex128
			}]()
			return err
		}, ".C: no column type for complex128"},
	} {
		if err := c.bind(); !errors.Is(err, oribi.ErrSchema) || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "oribi: ") {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	// A wider signed field can represent every value.
	type wide struct{ K int64 }
	rows, err := oribi.GetAs[wide](context.Background(), table, 4_000_000_000)
	must.Fail(t, err, oribi.ErrNotFound, rows)
	type row struct {
		K int64
		U uint64
	}
	typed := must.Get(oribi.Typed[row](table))(t)
	mustPut(t, typed, row{4_000_000_000, 1 << 63})
	must.Equal(t, must.Get(typed.Get(context.Background(), 4_000_000_000))(t), (row{4_000_000_000, 1 << 63}))
}

func bindAs[T any](t *oribi.Table) error {
	for _, err := range oribi.ScanAs[T](context.Background(), t) {
		return err
	}
	return nil
}
