package backup_test

import (
	"fmt"
	"log"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/backup"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// A repository keeps backups of a store; each can be restored.
func Example() {
	fsys := vfs.NewMem() // nil: the file system of the operating system
	options := func() *oribi.Options { return &oribi.Options{FS: fsys, Clock: mvcc.NewLogicalClock(mvcc.First)} }
	store, err := oribi.Open("/store", options())
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	columns, err := schema.New([]schema.Column{{Name: "path", Type: schema.String}, {Name: "size", Type: schema.Int64}},
		1)
	if err != nil {
		log.Fatal(err)
	}
	files, err := store.CreateTable("files", columns)
	if err != nil {
		log.Fatal(err)
	}
	repo := backup.Open(backup.Dir("/repo", fsys))
	for _, size := range []int{10, 20, 30} {
		b := store.NewBatch()
		b.Upsert(files, oribi.Row{"path": "a.txt", "size": size})
		if _, err := b.Commit(ctx); err != nil {
			log.Fatal(err)
		}
		if _, err := repo.Backup(ctx, store); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := repo.Prune(ctx, 2); err != nil {
		log.Fatal(err)
	}
	list, err := repo.Backups(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, b := range list {
		dir := fmt.Sprintf("/restored%d", b.Number)
		if _, err := repo.Restore(ctx, b.Number, dir, options()); err != nil {
			log.Fatal(err)
		}
		restored, err := oribi.Open(dir, options())
		if err != nil {
			log.Fatal(err)
		}
		files, err := restored.Table("files")
		if err != nil {
			log.Fatal(err)
		}
		row, err := files.Get(ctx, "a.txt")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.Number, row["size"])
		if err := restored.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 2 20
	// 3 30
}
