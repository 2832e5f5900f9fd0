/* A load generator that does not flatter: closed loop, or Poisson arrivals timed from the instant a
 * request was meant to start (so a stalled target is charged for those it kept waiting).
 *
 *   loadgen --port P [--path /v1/chat/completions] --body FILE [--header "Name: value"]...
 *           [--conns 64] [--seconds 4] [--rate R] [--stream]
 *
 * One thread, 127.0.0.1 only, kept-alive connections. A reply is good when its status is 200, its
 * framing is whole and its body holds "chatcmpl-bench" (JSON) or "[DONE]" (--stream). Prints one line
 * of JSON; times are in microseconds. First byte means the first byte of the body. Ten at signs in
 * the body become a number that no other request has, so that no cache knows it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CONNS = 8192, IN_BYTES = 262144, MAX_SAMPLES = 8000000, MAX_QUEUE = 1000000 };
static const long DRAIN_NS = 5000000000L;

struct conn {
    char *in;
    size_t used, scanned;
    long began_ns, first_ns, need;
    int fd, busy, status, chunked, in_body, seen_mark;
};
struct samples { uint32_t *us; long count; };

static struct conn conns[MAX_CONNS];
static int conn_count, open_limit = 64, epoll_fd, is_stream, idle[MAX_CONNS], idle_count;
static char *request;
static size_t request_size;
static char *number;
static long next_number;
static struct sockaddr_in target;
static struct samples whole, first;
static long queue[MAX_QUEUE], queue_head, queue_tail, bad, started, dropped;
static const char *mark = "chatcmpl-bench";

static long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void record(struct samples *s, long ns) {
    if (s->count < MAX_SAMPLES) s->us[s->count++] = (uint32_t)(ns / 1000);
}

static int connect_one(struct conn *c) {
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(c->fd, (struct sockaddr *)&target, sizeof target)) { close(c->fd); c->fd = -1; return 0; }
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &e);
    if (!c->in) c->in = malloc(IN_BYTES + 1);
    return 1;
}

static void rest(struct conn *c) {
    c->busy = 0;
    idle[idle_count++] = (int)(c - conns);
}

static void fail(struct conn *c) {
    if (c->busy) bad++;
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
    rest(c);
}

static void begin(struct conn *c, long intended_ns) {
    started++;
    c->busy = 1;
    c->used = c->scanned = 0;
    c->began_ns = intended_ns;
    c->first_ns = c->status = c->chunked = c->in_body = c->seen_mark = 0;
    c->need = -1;
    if (c->fd < 0 && !connect_one(c)) { fail(c); return; }
    if (number) {
        long left = next_number++;
        for (int at = 9; at >= 0; at--, left /= 10) number[at] = (char)('0' + left % 10);
    }
    size_t sent = 0;
    while (sent < request_size) {
        ssize_t n = send(c->fd, request + sent, request_size - sent, MSG_NOSIGNAL);
        if (n <= 0) { fail(c); return; }
        sent += (size_t)n;
    }
}

/* Looks for the mark in what is not yet searched; a mark may lie across two reads. */
static void search_mark(struct conn *c) {
    size_t size = strlen(mark), from = c->scanned > size ? c->scanned - size : 0;
    if (!c->seen_mark && memmem(c->in + from, c->used - from, mark, size)) c->seen_mark = 1;
    c->scanned = c->used;
}

/* Reads the head once it is whole: 1 read, 0 not yet, -1 a reply nobody can frame. */
static int read_head(struct conn *c) {
    char *end = memmem(c->in, c->used, "\r\n\r\n", 4);
    if (!end) return 0;
    size_t head = (size_t)(end - c->in) + 4;
    c->status = atoi(c->in + 9);
    for (char *line = c->in; line < end; line = strstr(line, "\r\n") + 2) {
        if (!strncasecmp(line, "content-length:", 15)) c->need = atol(line + 15);
        if (!strncasecmp(line, "transfer-encoding:", 18)) c->chunked = 1;
    }
    if (c->need < 0 && !c->chunked) return -1;
    c->used -= head;
    memmove(c->in, c->in + head, c->used + 1);
    c->in_body = 1;
    return 1;
}

/* Whether the body is whole. A chunked body is whole when it ends in the last-chunk line; the
 * marks of this bench never hold that text. */
static int is_whole(struct conn *c) {
    if (!c->chunked) return (long)c->used >= c->need;
    return c->used >= 5 && !memcmp(c->in + c->used - 5, "0\r\n\r\n", 5) &&
           (c->used == 5 || c->in[c->used - 6] == '\n');
}

static int readable(struct conn *c) {
    ssize_t n = recv(c->fd, c->in + c->used, IN_BYTES - c->used, MSG_DONTWAIT);
    if (n <= 0) {
        if (n < 0 && errno == EAGAIN) return 0;
        fail(c);
        return 1;
    }
    if (!c->busy) { fail(c); return 0; }
    c->used += (size_t)n;
    c->in[c->used] = 0;
    if (!c->in_body) {
        int state = read_head(c);
        if (state < 0) { fail(c); return 1; }
        if (state == 0) return 0;
    }
    if (!c->first_ns && c->used) c->first_ns = now_ns();
    search_mark(c);
    if (!is_whole(c)) {
        if (c->used > IN_BYTES / 2 && c->chunked) {
            memmove(c->in, c->in + c->used - 64, 65);
            c->used = c->scanned = 64;
        }
        return 0;
    }
    long now = now_ns();
    if (c->status != 200 || !c->seen_mark) bad++;
    record(&whole, now - c->began_ns);
    if (c->first_ns) record(&first, c->first_ns - c->began_ns);
    rest(c);
    return 1;
}

static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void print_percentiles(const char *name, struct samples *s) {
    static const double at[] = {0.5, 0.9, 0.99, 0.999};
    static const char *label[] = {"p50", "p90", "p99", "p999"};
    qsort(s->us, (size_t)s->count, sizeof *s->us, by_value);
    for (int i = 0; i < 4; i++)
        printf(",\"%s%s_us\":%u", name, label[i], s->count ? s->us[(long)((double)(s->count - 1) * at[i])] : 0);
    printf(",\"%smax_us\":%u", name, s->count ? s->us[s->count - 1] : 0);
}

static void dispatch(int keep_busy, long now) {
    while (idle_count) {
        if (keep_busy) begin(&conns[idle[--idle_count]], now);
        else if (queue_head < queue_tail) begin(&conns[idle[--idle_count]], queue[queue_head++ % MAX_QUEUE]);
        else return;
        if (bad > 100000) exit(4);
    }
}

static void run(double seconds, double rate) {
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer, &e);
    long begin_ns = now_ns(), end_ns = begin_ns + (long)(seconds * 1e9), next_ns = begin_ns;
    for (;;) {
        long now = now_ns();
        int is_over = now >= end_ns;
        while (rate > 0 && !is_over && next_ns <= now) {
            if (queue_tail - queue_head < MAX_QUEUE) queue[queue_tail++ % MAX_QUEUE] = next_ns;
            else dropped++;
            next_ns += (long)(-log(1.0 - drand48()) / rate * 1e9);
        }
        if (rate > 0 || !is_over) dispatch(rate <= 0, now);
        if (is_over && idle_count == conn_count && queue_head == queue_tail) break;
        if (now > end_ns + DRAIN_NS) { bad += conn_count - idle_count + (queue_tail - queue_head); break; }
        long wake = rate > 0 && !is_over ? next_ns : is_over ? now + 50000000L : end_ns;
        struct itimerspec spec = {.it_value = {wake / 1000000000L, wake % 1000000000L}};
        timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, NULL);
        struct epoll_event events[256];
        int n = epoll_wait(epoll_fd, events, 256, -1);
        for (int i = 0; i < n; i++) {
            struct conn *c = events[i].data.ptr;
            uint64_t fired;
            if (c) readable(c);
            else if (read(timer, &fired, sizeof fired) < 0 && errno != EAGAIN) exit(4);
        }
    }
    double took = (double)(now_ns() - begin_ns) / 1e9;
    printf("{\"requests\":%ld,\"bad\":%ld,\"dropped\":%ld,\"seconds\":%.3f,\"rps\":%.1f",
           whole.count, bad, dropped, took, (double)whole.count / took);
    print_percentiles("", &whole);
    print_percentiles("first_", &first);
    printf("}\n");
}

static void build_request(const char *path, const char *file, const char *headers, int port) {
    FILE *f = fopen(file, "rb");
    if (!f) { perror(file); exit(2); }
    char *body = malloc(4 << 20);
    size_t size = fread(body, 1, 4 << 20, f);
    fclose(f);
    request = malloc(size + strlen(headers) + strlen(path) + 256);
    int n = sprintf(request, "POST %s HTTP/1.1\r\nhost: 127.0.0.1:%d\r\ncontent-type: application/json\r\n"
                    "%scontent-length: %zu\r\n\r\n", path, port, headers, size);
    memcpy(request + n, body, size);
    request_size = (size_t)n + size;
    number = memmem(request, request_size, "@@@@@@@@@@", 10);
    next_number = now_ns() / 1000; /* a later run begins above the end of an earlier one */
    free(body);
}

int main(int argc, char **argv) {
    const char *path = "/v1/chat/completions", *file = NULL;
    static char headers[4096];
    double seconds = 4, rate = 0;
    int port = 0;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--stream")) { is_stream = 1; mark = "[DONE]"; continue; }
        if (!strcmp(argv[i], "--port")) port = atoi(value);
        else if (!strcmp(argv[i], "--path")) path = value;
        else if (!strcmp(argv[i], "--body")) file = value;
        else if (!strcmp(argv[i], "--conns")) open_limit = atoi(value);
        else if (!strcmp(argv[i], "--seconds")) seconds = atof(value);
        else if (!strcmp(argv[i], "--rate")) rate = atof(value);
        else if (!strcmp(argv[i], "--header") && strlen(headers) + strlen(value) + 3 < sizeof headers) {
            strcat(headers, value);
            strcat(headers, "\r\n");
        } else { fprintf(stderr, "unknown argument %s\n", argv[i]); return 2; }
        i++;
    }
    if (!port || !file || open_limit < 1 || open_limit > MAX_CONNS || seconds > 60) return 2;
    signal(SIGPIPE, SIG_IGN);
    srand48(42);
    target = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    build_request(path, file, headers, port);
    epoll_fd = epoll_create1(0);
    whole.us = malloc(MAX_SAMPLES * sizeof *whole.us);
    first.us = malloc(MAX_SAMPLES * sizeof *first.us);
    conn_count = open_limit;
    for (int i = 0; i < conn_count; i++) {
        conns[i].fd = -1;
        rest(&conns[i]);
    }
    run(seconds, rate);
    return 0;
}
