# Starts IPython's kernel as `python -m ipykernel_launcher` does, with what the other files beside this one add, except
# python_variables.py. The program is these in one.
from ipykernel.kernelapp import IPKernelApp


class App(IPKernelApp):
    def log_connection_info(self):
        pass  # how to connect another client is nobody's business, and would pass for the last words of a dead kernel

    def init_kernel(self):
        super().init_kernel()
        expect_no_debugger(self.kernel)
        own_output_to_own_cell(self.kernel.shell)
        flush_with_cells(self.kernel.shell.events)
        show_whole_errors(self.kernel.shell)
        tell_where_errors_happened(self.kernel.shell)
        fill_lines_with_values(self.kernel.shell)
        show_pages(self.kernel.shell)
        show_before_drawing(self.kernel.shell.events)
        show_all_pictures(self.kernel.shell)
        show_pictures_for_windows(self.kernel.shell)
        hear_interrupts(self.kernel)
        keep_pace(self.kernel)
        ask_after_output(self.kernel)
        pass_over_breakpoints(self.kernel)
        debug_nothing(self.kernel)
        find_packages_installed_later()
        sys.argv = ["cell"]  # the kernel's own arguments mean nothing to code that reads its own

    def start(self):
        keep_own_modules()
        collect_from_here_on()
        super().start()


App.launch_instance()
