/* Stands between a program and its disk (LD_PRELOAD): notes what the program writes, syncs and names below one folder, lets
 * writes and syncs fail or take their time on demand, and moves the clock of the day.
 *
 * DISK_SHIM_ROOT     the folder that is watched
 * DISK_SHIM_LOG      where everything is noted, in the order in which it happened
 * DISK_SHIM_CONTROL  what the test wants; shared memory, see struct control
 *
 * What is below the folder is known by its inode, so that duplicated descriptors need no care. A note is made under one
 * lock with the call itself: the log has one order, and that is the order on the disk.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define BUCKETS 4096

/* The same places as in mod.rs. */
struct control {
    int32_t write_errno;
    int32_t sync_errno;
    int32_t create_errno;
    uint32_t sync_delay_ms;
    uint32_t syncs_lost;
    uint32_t hits;
    uint32_t syncs;
    uint32_t unused;
    int64_t clock_ms;
    char match[256];
};

struct known {
    dev_t device;
    ino_t inode;
    uint64_t id;
    char *path;
    struct known *next;
};

struct note {
    uint8_t kind;
    uint8_t unused[7];
    uint64_t id;
    uint64_t number;
    uint32_t first;
    uint32_t second;
};

static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static struct known *known[BUCKETS];
static struct control *control;
static char root[PATH_BYTES];
static size_t root_bytes;
static int log_fd = -1;
static uint64_t log_at;
static uint64_t last_id;

static int (*real_openat)(int, const char *, int, ...);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_ftruncate)(int, off_t);
static int (*real_renameat)(int, const char *, int, const char *);
static int (*real_unlinkat)(int, const char *, int);
static int (*real_mkdirat)(int, const char *, mode_t);
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void start(void) {
    real_openat = dlsym(RTLD_NEXT, "openat");
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    real_writev = dlsym(RTLD_NEXT, "writev");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate");
    real_renameat = dlsym(RTLD_NEXT, "renameat");
    real_unlinkat = dlsym(RTLD_NEXT, "unlinkat");
    real_mkdirat = dlsym(RTLD_NEXT, "mkdirat");
    real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    const char *folder = getenv("DISK_SHIM_ROOT");
    const char *log = getenv("DISK_SHIM_LOG");
    const char *wanted = getenv("DISK_SHIM_CONTROL");
    if (!folder || !log || !wanted || !realpath(folder, root)) {
        return;
    }
    root_bytes = strlen(root);
    int fd = real_openat(AT_FDCWD, wanted, O_RDWR | O_CLOEXEC);
    void *shared = fd < 0 ? MAP_FAILED
                          : mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared != MAP_FAILED) {
        control = shared;
    }
    log_fd = real_openat(AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    struct stat found;
    if (log_fd >= 0 && fstat(log_fd, &found) == 0) {
        log_at = found.st_size;
    }
    /* No id is given twice, also not by the next process. */
    last_id = (uint64_t)getpid() << 32;
}

/* The whole path; 0 where it is not below the folder. */
static int place(int folder, const char *path, char *whole) {
    if (!root_bytes || !path) {
        return 0;
    }
    int length;
    if (path[0] == '/') {
        length = snprintf(whole, PATH_BYTES, "%s", path);
    } else if (folder == AT_FDCWD) {
        char here[PATH_BYTES];
        if (!getcwd(here, sizeof here)) {
            return 0;
        }
        length = snprintf(whole, PATH_BYTES, "%s/%s", here, path);
    } else {
        char link[64], there[PATH_BYTES];
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t count = readlink(link, there, sizeof there - 1);
        if (count < 0) {
            return 0;
        }
        there[count] = 0;
        length = snprintf(whole, PATH_BYTES, "%s/%s", there, path);
    }
    if (length < 0 || length >= PATH_BYTES) {
        return 0;
    }
    return strncmp(whole, root, root_bytes) == 0 && (whole[root_bytes] == '/' || whole[root_bytes] == 0);
}

static void note(uint8_t kind, uint64_t id, uint64_t number, const void *first, size_t first_bytes,
                 const void *second, size_t second_bytes) {
    if (log_fd < 0) {
        return;
    }
    struct note head = {.kind = kind, .id = id, .number = number, .first = first_bytes, .second = second_bytes};
    struct iovec parts[3] = {{&head, sizeof head}, {(void *)first, first_bytes}, {(void *)second, second_bytes}};
    if (real_writev(log_fd, parts, 3) != (ssize_t)(sizeof head + first_bytes + second_bytes)) {
        /* Without its log nothing can be said about the disk. */
        static const char said[] = "disk shim: the log cannot be written\n";
        real_write(2, said, sizeof said - 1);
        abort();
    }
    log_at += sizeof head + first_bytes + second_bytes;
}

static void note_path(uint8_t kind, uint64_t id, uint64_t number, const char *path) {
    note(kind, id, number, path, strlen(path), NULL, 0);
}

static struct known *find(const struct stat *file) {
    struct known *one = known[file->st_ino % BUCKETS];
    while (one && (one->inode != file->st_ino || one->device != file->st_dev)) {
        one = one->next;
    }
    return one;
}

/* Gives a file a fresh id under this path; an inode may come back after its file is gone. */
static struct known *learn(const struct stat *file, const char *path) {
    struct known *one = find(file);
    if (!one) {
        one = calloc(1, sizeof *one);
        one->device = file->st_dev;
        one->inode = file->st_ino;
        one->next = known[file->st_ino % BUCKETS];
        known[file->st_ino % BUCKETS] = one;
    }
    free(one->path);
    one->path = strdup(path);
    one->id = ++last_id;
    return one;
}

/* A file that was there before: it comes with what it holds. */
static void adopt(const char *path) {
    struct stat file;
    if (stat(path, &file) || !S_ISREG(file.st_mode) || find(&file)) {
        return;
    }
    struct known *one = learn(&file, path);
    char *held = malloc(file.st_size + 1);
    int fd = real_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    ssize_t count = fd < 0 ? 0 : pread(fd, held, file.st_size, 0);
    if (fd >= 0) {
        close(fd);
    }
    note('A', one->id, 0, path, strlen(path), held, count < 0 ? 0 : count);
    free(held);
}

/* The file behind a descriptor, if it is one of ours. */
static struct known *behind(int fd, struct stat *file) {
    if (!root_bytes || fstat(fd, file) || !S_ISREG(file->st_mode)) {
        return NULL;
    }
    return find(file);
}

static int is_meant(const char *path) {
    return control->match[0] == 0 || strstr(path, control->match) != NULL;
}

/* Whether this fails: sets errno. */
static int fails(int wanted, const char *path) {
    if (!control || !wanted || !is_meant(path)) {
        return 0;
    }
    __atomic_add_fetch(&control->hits, 1, __ATOMIC_SEQ_CST);
    errno = wanted;
    return 1;
}

static int opens(int folder, const char *path, int flags, mode_t mode) {
    char whole[PATH_BYTES];
    if (!place(folder, path, whole) || (flags & O_DIRECTORY)) {
        return real_openat(folder, path, flags, mode);
    }
    pthread_mutex_lock(&order);
    struct stat file;
    int was_there = stat(whole, &file) == 0;
    if (!was_there && (flags & O_CREAT) && fails(control ? control->create_errno : 0, whole)) {
        pthread_mutex_unlock(&order);
        return -1;
    }
    if (was_there) {
        adopt(whole);
    }
    int fd = real_openat(folder, path, flags, mode);
    int why = errno;
    if (fd >= 0 && fstat(fd, &file) == 0 && S_ISREG(file.st_mode)) {
        if (!was_there) {
            note_path('C', learn(&file, whole)->id, 0, whole);
        } else if (flags & O_TRUNC) {
            note('T', find(&file)->id, 0, NULL, 0, NULL, 0);
        }
    }
    pthread_mutex_unlock(&order);
    errno = why;
    return fd;
}

#define MODE_OF(flags, mode)                          \
    mode_t mode = 0;                                  \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {          \
        va_list rest;                                 \
        va_start(rest, flags);                        \
        mode = va_arg(rest, mode_t);                  \
        va_end(rest);                                 \
    }

int open(const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return opens(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return opens(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return opens(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return opens(folder, path, flags, mode);
}

/* Where the next write of this descriptor goes. */
static off_t next_place(int fd, const struct stat *file) {
    return fcntl(fd, F_GETFL) & O_APPEND ? file->st_size : lseek(fd, 0, SEEK_CUR);
}

ssize_t write(int fd, const void *bytes, size_t count) {
    struct stat file;
    if (!root_bytes || fstat(fd, &file) || !S_ISREG(file.st_mode)) {
        return real_write(fd, bytes, count);
    }
    pthread_mutex_lock(&order);
    struct known *one = behind(fd, &file);
    ssize_t done;
    if (!one) {
        done = real_write(fd, bytes, count);
    } else if (fails(control ? control->write_errno : 0, one->path)) {
        done = -1;
    } else {
        off_t at = next_place(fd, &file);
        done = real_write(fd, bytes, count);
        if (done > 0) {
            note('W', one->id, at, NULL, 0, bytes, done);
        }
    }
    int why = errno;
    pthread_mutex_unlock(&order);
    errno = why;
    return done;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    struct stat file;
    if (!root_bytes || fstat(fd, &file) || !S_ISREG(file.st_mode)) {
        return real_writev(fd, parts, count);
    }
    pthread_mutex_lock(&order);
    struct known *one = behind(fd, &file);
    pthread_mutex_unlock(&order);
    if (!one) {
        return real_writev(fd, parts, count);
    }
    ssize_t sum = 0;
    for (int n = 0; n < count; n++) {
        ssize_t done = write(fd, parts[n].iov_base, parts[n].iov_len);
        if (done < 0) {
            return sum ? sum : done;
        }
        sum += done;
        if ((size_t)done < parts[n].iov_len) {
            break;
        }
    }
    return sum;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    struct stat file;
    pthread_mutex_lock(&order);
    struct known *one = behind(fd, &file);
    ssize_t done;
    if (one && fails(control ? control->write_errno : 0, one->path)) {
        done = -1;
    } else {
        done = real_pwrite(fd, bytes, count, at);
        if (one && done > 0) {
            note('W', one->id, at, NULL, 0, bytes, done);
        }
    }
    int why = errno;
    pthread_mutex_unlock(&order);
    errno = why;
    return done;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    return pwrite(fd, bytes, count, at);
}

int ftruncate(int fd, off_t length) {
    struct stat file;
    pthread_mutex_lock(&order);
    struct known *one = behind(fd, &file);
    int done;
    if (one && length > file.st_size && fails(control ? control->write_errno : 0, one->path)) {
        done = -1;
    } else {
        done = real_ftruncate(fd, length);
        if (one && done == 0) {
            note('T', one->id, length, NULL, 0, NULL, 0);
        }
    }
    int why = errno;
    pthread_mutex_unlock(&order);
    errno = why;
    return done;
}

int ftruncate64(int fd, off64_t length) {
    return ftruncate(fd, length);
}

/* What a sync has promised is what was written before it began. */
static int syncs(int fd, int (*real)(int)) {
    struct stat file;
    if (!root_bytes || fstat(fd, &file) || !(S_ISREG(file.st_mode) || S_ISDIR(file.st_mode))) {
        return real(fd);
    }
    char link[64], path[PATH_BYTES];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t count = readlink(link, path, sizeof path - 1);
    path[count < 0 ? 0 : count] = 0;
    pthread_mutex_lock(&order);
    struct known *one = S_ISREG(file.st_mode) ? find(&file) : NULL;
    uint64_t id = one ? one->id : 0;
    int is_ours = one || (S_ISDIR(file.st_mode) && strncmp(path, root, root_bytes) == 0);
    uint64_t begun_at = log_at;
    pthread_mutex_unlock(&order);
    if (!is_ours) {
        return real(fd);
    }
    if (control && control->sync_delay_ms && is_meant(path)) {
        usleep(control->sync_delay_ms * 1000);
    }
    if (fails(control ? control->sync_errno : 0, path)) {
        return -1;
    }
    if (control && control->syncs_lost && is_meant(path)) {
        __atomic_add_fetch(&control->hits, 1, __ATOMIC_SEQ_CST);
        return 0;
    }
    pthread_mutex_lock(&order);
    if (control) {
        __atomic_add_fetch(&control->syncs, 1, __ATOMIC_SEQ_CST);
    }
    if (S_ISDIR(file.st_mode)) {
        note_path('D', 0, begun_at, path);
    } else {
        note('S', id, begun_at, NULL, 0, NULL, 0);
    }
    pthread_mutex_unlock(&order);
    return 0;
}

int fsync(int fd) {
    return syncs(fd, real_fsync);
}

int fdatasync(int fd) {
    return syncs(fd, real_fdatasync);
}

static int renames(int from_folder, const char *from, int to_folder, const char *to) {
    char source[PATH_BYTES], target[PATH_BYTES];
    if (!place(from_folder, from, source) || !place(to_folder, to, target)) {
        return real_renameat(from_folder, from, to_folder, to);
    }
    pthread_mutex_lock(&order);
    adopt(source);
    struct stat file;
    int done = fails(control ? control->create_errno : 0, target)
                   ? -1
                   : real_renameat(from_folder, from, to_folder, to);
    int why = errno;
    if (done == 0) {
        if (stat(target, &file) == 0 && find(&file)) {
            struct known *one = find(&file);
            free(one->path);
            one->path = strdup(target);
        }
        note('R', 0, 0, source, strlen(source), target, strlen(target));
    }
    pthread_mutex_unlock(&order);
    errno = why;
    return done;
}

int rename(const char *from, const char *to) {
    return renames(AT_FDCWD, from, AT_FDCWD, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    return renames(from_folder, from, to_folder, to);
}

static int removes(int folder, const char *path, int flags) {
    char whole[PATH_BYTES];
    if (!place(folder, path, whole)) {
        return real_unlinkat(folder, path, flags);
    }
    pthread_mutex_lock(&order);
    adopt(whole);
    int done = real_unlinkat(folder, path, flags);
    int why = errno;
    if (done == 0) {
        note_path('U', 0, 0, whole);
    }
    pthread_mutex_unlock(&order);
    errno = why;
    return done;
}

int unlink(const char *path) {
    return removes(AT_FDCWD, path, 0);
}

int unlinkat(int folder, const char *path, int flags) {
    return removes(folder, path, flags);
}

int rmdir(const char *path) {
    return removes(AT_FDCWD, path, AT_REMOVEDIR);
}

static int makes(int folder, const char *path, mode_t mode) {
    char whole[PATH_BYTES];
    if (!place(folder, path, whole)) {
        return real_mkdirat(folder, path, mode);
    }
    pthread_mutex_lock(&order);
    int done = fails(control ? control->create_errno : 0, whole) ? -1 : real_mkdirat(folder, path, mode);
    int why = errno;
    if (done == 0) {
        note_path('M', 0, 0, whole);
    }
    pthread_mutex_unlock(&order);
    errno = why;
    return done;
}

int mkdir(const char *path, mode_t mode) {
    return makes(AT_FDCWD, path, mode);
}

int mkdirat(int folder, const char *path, mode_t mode) {
    return makes(folder, path, mode);
}

/* Ways to write that are not noted: whoever tries them is sent to the plain ones. */
ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t count, unsigned flags) {
    (void)in, (void)in_at, (void)out, (void)out_at, (void)count, (void)flags;
    errno = ENOSYS;
    return -1;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!real_clock_gettime) {
        start();
    }
    int done = real_clock_gettime(clock, time);
    if (done == 0 && clock == CLOCK_REALTIME && control) {
        int64_t millis = control->clock_ms;
        time->tv_sec += millis / 1000;
        time->tv_nsec += millis % 1000 * 1000000;
        if (time->tv_nsec < 0) {
            time->tv_sec -= 1;
            time->tv_nsec += 1000000000;
        } else if (time->tv_nsec >= 1000000000) {
            time->tv_sec += 1;
            time->tv_nsec -= 1000000000;
        }
    }
    return done;
}
